// The main thread's handle on one worker that compiles constraints. The worker starts on first use. A compilation that
// exceeds its time or memory ends the worker, and the next job starts a new one. It runs one job at a time; the caller
// maintains `busy`. Time is the thread's CPU time where the system reports it, so a busy machine does not refuse more.

import { Worker } from "node:worker_threads";
import { compiledEntry } from "../system/package.ts";
import { threadCpuMs } from "./compile-effort.ts";
import type { CompileJob, CompileResult } from "./compile-worker.ts";

/** Time to load the thread's code. Only a badly overloaded machine needs longer. */
const START_MS = 30_000;
/** A busy machine delays a thread's CPU time. The wall-clock limit is this many times the CPU limit. */
const PATIENCE = 6;

export class CompileThread {
  readonly #timeoutMs: number;
  readonly #memoryMb: number;
  #worker: Worker | null = null;
  #ready = false;
  /** Identifies the thread when reading its CPU time; null if that cannot be read. */
  #thread: number | null = null;
  #jobs = 0;
  busy = false;

  constructor(timeoutMs: number, memoryMb: number) {
    this.#timeoutMs = timeoutMs;
    this.#memoryMb = memoryMb;
  }

  /** Rejects only on an internal fault. */
  async run(
    constraint: string,
  ): Promise<{ key: string; ignored: readonly string[] } | { refused: string; late: boolean }> {
    const result = await this.#ask({ id: ++this.#jobs, constraint });
    if ("key" in result) return { key: result.key, ignored: result.ignored };
    if ("refused" in result) return { refused: result.refused, late: result.late === true };
    throw new Error(`compiling a constraint failed: ${"fault" in result ? result.fault : "no result"}`);
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #ask(job: CompileJob): Promise<CompileResult> {
    const { id } = job;
    const worker = this.#start();
    return new Promise((resolve) => {
      let startedAt = performance.now();
      let usedBefore = threadCpuMs(this.#thread);
      const tooLong = (): void => {
        const elapsed = performance.now() - startedAt;
        const used = threadCpuMs(this.#thread);
        const left = used === null || usedBefore === null ? 0 : this.#timeoutMs - (used - usedBefore);
        if (left > 0 && elapsed < PATIENCE * this.#timeoutMs) {
          timer = setTimeout(tooLong, Math.max(left, 10));
          return;
        }
        const seconds = this.#timeoutMs / 1000;
        const refused = `the constraint is too complex: it did not compile within ${seconds} s`;
        settle({ id, refused, late: true }, true);
      };
      const tooSlow = (): void => settle({ id, fault: "the grammar worker did not start" }, true);
      let timer = this.#ready ? setTimeout(tooLong, this.#timeoutMs) : setTimeout(tooSlow, START_MS);
      const onMessage = (result: CompileResult): void => {
        if ("ready" in result) {
          this.#ready = true;
          this.#thread = result.thread;
          startedAt = performance.now();
          usedBefore = threadCpuMs(this.#thread);
          clearTimeout(timer);
          timer = setTimeout(tooLong, this.#timeoutMs);
        } else if (result.id === id) settle(result, false);
      };
      const onError = (error: Error & { code?: string }): void => {
        const needs = `the constraint is too complex: it needs more than ${this.#memoryMb} MB to compile`;
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") settle({ id, refused: needs }, true);
        else settle({ id, fault: error.stack ?? error.message }, true);
      };
      const onExit = (): void => settle({ id, fault: "the grammar worker ended" }, true);
      const settle = (result: CompileResult, discard: boolean): void => {
        clearTimeout(timer);
        worker.off("message", onMessage).off("error", onError).off("exit", onExit).unref();
        if (discard) void this.close();
        resolve(result);
      };
      worker.on("message", onMessage).on("error", onError).on("exit", onExit).ref();
      worker.postMessage(job);
    });
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(compiledEntry(import.meta.url, "./compile-worker.ts"), {
      resourceLimits: { maxOldGenerationSizeMb: this.#memoryMb },
    });
    // The thread may still fail between jobs or while it is being terminated. The next job then starts a new one.
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = null;
    };
    worker.on("error", forget).on("exit", forget);
    this.#worker = worker;
    this.#ready = false;
    this.#thread = null;
    return worker;
  }
}
