import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { LINUX, needing } from "../../test/support/needs.ts";
import { compiledEntry } from "../system/package.ts";
import { spendEffort, threadCpuMs, withinEffort } from "./compile-effort.ts";
import { GrammarError } from "./grammar-error.ts";

const spend = (units: number) => () => spendEffort(units);

test("refuses work beyond the limit, however it is divided", () => {
  expect(() => withinEffort(spend(20_000_001))).toThrow(GrammarError);
  const inSteps = (): void => {
    for (let step = 0; step < 21; step++) spendEffort(1_000_000);
  };
  expect(() => withinEffort(inSteps)).toThrow(/too much work to compile/);
});

test("every compilation has the whole limit, also after one that was refused", () => {
  for (let time = 0; time < 3; time++) {
    expect(() => withinEffort(spend(19_000_000))).not.toThrow();
    expect(() => withinEffort(spend(30_000_000))).toThrow(GrammarError);
  }
});

test("work outside of a compilation is not counted", () => {
  expect(spend(1e12)).not.toThrow();
});

const script = (url: string) => `
  const { parentPort } = require("node:worker_threads");
  import(${JSON.stringify(url)}).then(({ yieldToOthers }) => {
    const thread = yieldToOthers();
    parentPort.postMessage({ thread, priority: thread === null ? null : require("node:os").getPriority(thread) });
    parentPort.on("message", () => {
      let x = 0;
      for (let i = 0; i < 1e8; i++) x += Math.sqrt(i);
      parentPort.postMessage(x);
    });
  });`;

needing(LINUX).it("a thread lowers its priority and reports only its own CPU time", async () => {
  const worker = new Worker(script(compiledEntry(import.meta.url, "./compile-effort.ts").href), { eval: true });
  const next = () => new Promise<{ thread: number; priority: number }>((resolve) => worker.once("message", resolve));
  const { thread, priority } = await next();
  expect(priority).toBe(10);
  const before = threadCpuMs(thread)!;
  worker.postMessage("work");
  await next();
  expect(threadCpuMs(thread)! - before).toBeGreaterThan(0);
  await worker.terminate();
  expect(threadCpuMs(thread)).toBeNull();
  expect(threadCpuMs(null)).toBeNull();
});
