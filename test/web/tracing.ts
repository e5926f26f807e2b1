// How long the page keeps its thread busy, from the browser's own trace.
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";

/** Longest wait for the trace when the work is done. */
const END_MS = 120_000;

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Thread time in microseconds. */
  tdur?: number;
  args: { name?: string };
}

/**
 * Milliseconds of processor time of the longest task of the page's thread while `work` runs. A frame cannot be shorter than
 * its longest task. Processor time, because on a busy machine a task may wait for the processor for as long as it likes.
 */
export async function longestTask(page: Page, work: () => Promise<void>): Promise<number> {
  const browser = page.context().browser()!;
  await browser.startTracing(page, { categories: ["toplevel", "__metadata"] });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await Promise.race([browser.stopTracing(), neverEnds()]);
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const threads = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents.filter(({ tdur, pid, tid }) => tdur !== undefined && threads.has(`${pid} ${tid}`));
  if (tasks.length === 0) throw new Error("the trace has no tasks of the page");
  return tasks.reduce((longest, { tdur }) => Math.max(longest, tdur!), 0) / 1000;
}

async function neverEnds(): Promise<never> {
  await sleep(END_MS, undefined, { ref: false });
  throw new Error(`the browser's trace did not end within ${END_MS / 1000} s`);
}
