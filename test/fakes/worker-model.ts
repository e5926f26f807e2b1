// A fake model for engine worker threads. It counts upwards and misbehaves on certain tokens. compile-fakes.ts compiles
// it on demand, because a thread cannot run TypeScript.

import type { ModelHost } from "../../src/engine/model-host.ts";
import { ChoiceConstraints } from "./choice-constraint.ts";
import { FakeAdapters } from "./fake-adapters.ts";
import { FakeRunner, hashRow, scriptedRow } from "./fake-runner.ts";

export interface WorkerModelOptions {
  row?: "hash" | "counting";
  numBlocks?: number;
  /** Every step keeps the thread busy for this long. */
  busyMs?: number;
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
      if (begins(EXIT_TOKEN)) process.exit(7);
      if (begins(THROW_TOKEN)) {
        setImmediate(() => {
          throw new Error("an error nobody caught");
        });
        await new Promise(() => {});
      }
      const until = performance.now() + (options.busyMs ?? 0);
      while (performance.now() < until);
    },
  });
  const adapters = new FakeAdapters(2);
  adapters.gone = options.gone ?? null;
  return { runner, adapters, constraints: new ChoiceConstraints(256) };
}
