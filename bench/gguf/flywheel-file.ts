// A GGUF file in our engine: the graph that `flywheel serve` runs, one sequence at a time.

import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { DecoderRunner } from "../../src/model/decoder-runner.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
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
  const checkpoint = openCheckpoint(path);
  const options = { maxLoras: 1, maxLoraRank: 8, adaptersFromStart: false, maxPositions: longest };
  const runner = await DecoderRunner.create(checkpoint, {
    ...{ ...options, weightType, threads, numBlocks, positionsPerBlock: POSITIONS_PER_BLOCK },
  }).finally(() => checkpoint.close());
  const blocks = Int32Array.from({ length: numBlocks }, (_, block) => block);

  async function logits(tokens: readonly number[], start: number, rows: "last" | "all"): Promise<Float32Array> {
    const needed = blocks.subarray(0, Math.ceil((start + tokens.length) / POSITIONS_PER_BLOCK));
    const chunk = { tokens: Int32Array.from(tokens), start, blocks: needed, adapterSlot: 0, logits: rows };
    return (await runner.forward([chunk]))[0]!;
  }

  return {
    async greedy(prompt, count) {
      const tokens = [largestAt(await logits(prompt, 0, "last"))];
      while (tokens.length < count) {
        tokens.push(largestAt(await logits(tokens.slice(-1), prompt.length + tokens.length - 1, "last")));
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

function largestAt(row: Float32Array): number {
  return row.reduce((best, logit, id) => (logit > row[best]! ? id : best), 0);
}

function logSoftmax(row: Float32Array): Float64Array {
  const largest = row[largestAt(row)]!;
  const sum = row.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return Float64Array.from(row, (logit) => logit - largest - Math.log(sum));
}
