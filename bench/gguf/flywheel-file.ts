// A GGUF file in our engine: the graph that `flywheel serve` runs, one sequence at a time.

import type { WeightType } from "../../src/model/linear/linear.ts";
import { argmax, blocksFrom, chunk, logSoftmax, openRunner } from "../../test/reference/runner-driver.ts";
import type { FileReader } from "./file-reader.ts";

const POSITIONS_PER_BLOCK = 64;

/** `longest`: of the sequences that will be asked for, in tokens. */
export async function openInFlywheel(
  path: string,
  weightType: WeightType,
  threads: number,
  longest: number,
): Promise<FileReader> {
  const numBlocks = Math.ceil(longest / POSITIONS_PER_BLOCK);
  const memory = { positionsPerBlock: POSITIONS_PER_BLOCK, numBlocks, maxPositions: longest };
  const runner = await openRunner(path, { weightType, threads, ...memory });

  async function logits(tokens: readonly number[], start: number, rows: "last" | "all"): Promise<Float32Array> {
    const blocks = blocksFrom(0, start + tokens.length, POSITIONS_PER_BLOCK);
    return (await runner.forward([chunk(tokens, start, blocks, { logits: rows })]))[0]!.slice();
  }

  return {
    async greedy(prompt, count) {
      const tokens = [argmax(await logits(prompt, 0, "last"))];
      while (tokens.length < count) {
        tokens.push(argmax(await logits(tokens.slice(-1), prompt.length + tokens.length - 1, "last")));
      }
      return tokens;
    },
    async distributions(tokens) {
      const rows = await logits(tokens, 0, "all");
      const size = runner.vocabSize;
      return tokens.map((_, i) => logSoftmax(rows.subarray(i * size, (i + 1) * size)));
    },
    close: () => runner.close(),
  };
}
