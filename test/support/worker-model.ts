// A fake model for engine worker threads. It counts upwards and misbehaves on certain tokens. compile-fakes.ts compiles
// it on demand, because a thread cannot run TypeScript.

import type { ModelHost } from "../../src/engine/thread/engine-loop.ts";
import { ChoiceConstraints } from "./choice-constraint.ts";
import { FakeAdapters } from "./fake-adapters.ts";
import { FakeRunner, hashRow, scriptedRow } from "./fake-runner.ts";

export interface WorkerModelOptions {
  row?: "hash" | "counting";
  numBlocks?: number;
  /** Every step keeps the thread busy for this long. */
  busyMs?: number;
  /** Every step blocks the thread until the number here is positive, and takes one off. */
  gate?: Int32Array;
  /** Becomes 1 when the thread exits. */
  exited?: Int32Array;
  /** createRunner rejects with this. */
  refuse?: string;
  /** A folder that does not exist. */
  gone?: string;
}

/** A prompt that begins with one of these ends the thread: by exit, or by an uncaught error. */
export const EXIT_TOKEN = 251;
export const THROW_TOKEN = 252;

export async function createRunner(given: unknown): Promise<ModelHost> {
  const options = given as WorkerModelOptions;
  if (options.refuse !== undefined) throw new Error(options.refuse);
  const runner = new FakeRunner({
    row: options.row === "hash" ? hashRow : scriptedRow((tokens) => (tokens.at(-1)! + 1) % 250),
    positionsPerBlock: 16,
    numBlocks: options.numBlocks ?? 64,
    before: async (chunks) => {
      const begins = (token: number): boolean => chunks.some(({ start, tokens }) => start === 0 && tokens[0] === token);
      if (begins(EXIT_TOKEN)) {
        if (options.exited) Atomics.store(options.exited, 0, 1);
        if (options.exited) Atomics.notify(options.exited, 0);
        process.exit(7);
      }
      if (begins(THROW_TOKEN)) {
        setImmediate(() => {
          throw new Error("an error nobody caught");
        });
        await new Promise(() => {});
      }
      if (options.gate) {
        Atomics.wait(options.gate, 0, 0);
        Atomics.sub(options.gate, 0, 1);
      }
      const until = performance.now() + (options.busyMs ?? 0);
      while (performance.now() < until);
    },
  });
  const adapters = new FakeAdapters(2);
  adapters.gone = options.gone ?? null;
  return { runner, adapters, constraints: new ChoiceConstraints(256) };
}
