// The memory of one row of logits: the kernels' own memory, with all that they read and write about the row.

import type { Kernels } from "./kernels/kernels.ts";
import { instantiateKernels } from "./kernels/kernels.ts";
import { blockWords } from "./kernels/mask.ts";
import { BLOCK_ENTRIES } from "./kernels/parts.ts";
import { HISTOGRAM_BUCKETS } from "./kernels/search.ts";

/** Addresses of a row (or of the row of its block maxima) and of its block maxima. */
export interface RowLevel {
  address: number;
  blocks: number;
  maxima: number;
}

export interface RowMemory {
  kernels: Kernels;
  /** The entries, and one level up the block maxima as a row of their own. */
  entries: RowLevel;
  maxima: RowLevel;
  /** [entries], [blocks] and [blocks of blocks]: the row, the largest entry of each block, the largest of 64 of those. */
  values: Float32Array;
  blockMaxima: Float32Array;
  topMaxima: Float32Array;
  /** [entries] and [blocks]: the weights of the entries, and their sum by block. */
  weights: Float32Array;
  blockSums: Float64Array;
  /** The set of legal tokens, as bits. */
  legal: Int32Array;
  /** [entries]: ids that were asked for. */
  ids: Int32Array;
  /** [histogramBuckets + 1, 4] */
  counts: Int32Array;
  /** [1]: how many entries lie in buckets above the one found. */
  above: Int32Array;
}

/** Rows are padded to whole blocks with -Infinity. `values` covers only the vocabulary. */
export function rowMemory(vocabSize: number): RowMemory {
  const blocks = wholeBlocks(vocabSize);
  const topBlocks = wholeBlocks(blocks);
  const padded = blocks * BLOCK_ENTRIES;
  const { at, end } = layout({
    values: padded * 4,
    weights: padded * 4,
    blockMaxima: topBlocks * BLOCK_ENTRIES * 4,
    topMaxima: wholeBlocks(topBlocks) * BLOCK_ENTRIES * 4,
    blockSums: blocks * 8,
    legal: blocks * blockWords * 4,
    ids: padded * 4,
    counts: (HISTOGRAM_BUCKETS + 1) * 4 * 4,
    above: 4,
  });
  const { kernels, memory } = instantiateKernels(end);
  const { buffer } = memory;
  new Float32Array(buffer, at.values, padded).fill(Number.NEGATIVE_INFINITY);
  new Float32Array(buffer, at.blockMaxima, topBlocks * BLOCK_ENTRIES).fill(Number.NEGATIVE_INFINITY);
  return {
    kernels,
    entries: { address: at.values, blocks, maxima: at.blockMaxima },
    maxima: { address: at.blockMaxima, blocks: topBlocks, maxima: at.topMaxima },
    values: new Float32Array(buffer, at.values, vocabSize),
    blockMaxima: new Float32Array(buffer, at.blockMaxima, blocks),
    topMaxima: new Float32Array(buffer, at.topMaxima, topBlocks),
    weights: new Float32Array(buffer, at.weights, padded),
    blockSums: new Float64Array(buffer, at.blockSums, blocks),
    legal: new Int32Array(buffer, at.legal, blocks * blockWords),
    ids: new Int32Array(buffer, at.ids, padded),
    counts: new Int32Array(buffer, at.counts, (HISTOGRAM_BUCKETS + 1) * 4),
    above: new Int32Array(buffer, at.above, 1),
  };
}

const wholeBlocks = (entries: number) => Math.ceil(entries / BLOCK_ENTRIES);

/** Places areas of these sizes in bytes one after the other, each at a multiple of 64. */
function layout<Name extends string>(bytes: Record<Name, number>): { at: Record<Name, number>; end: number } {
  let end = 0;
  const at = {} as Record<Name, number>;
  for (const [name, size] of Object.entries(bytes) as [Name, number][]) {
    at[name] = end;
    end += Math.ceil(size / 64) * 64;
  }
  return { at, end };
}
