// Finds the k-th largest entry of a row by radix selection over the sort keys of floats. It takes at most three
// counting passes for any distribution, and never sorts.

import { keyToFloat, sortKey } from "./float-order.ts";
import { BLOCK_ENTRIES } from "./kernels/parts.ts";
import { HISTOGRAM_BUCKETS } from "./kernels/search.ts";
import type { LogitRow } from "./row.ts";
import type { RowLevel } from "./row-memory.ts";

export interface Kth {
  value: number;
  /** How many entries are larger: less than k. */
  above: number;
}

const bucketBits = Math.log2(HISTOGRAM_BUCKETS);

/** The k-th largest (k >= 1) of the entries >= low of a scanned row, or null if there are fewer than k. */
export function kthLargest(row: LogitRow, k: number, low: number): Kth | null {
  const bound = Math.max(low, lowerBound(row, k));
  if (bound === row.max) return { value: row.max, above: 0 };
  return descend(row, row.entries, k, bound);
}

/**
 * A value that at least k entries reach, and not many more. The k-th largest block maximum is such a value. With fewer than
 * k blocks it is a guess: the block maximum that 1.2 k entries would reach if they lay anywhere, else no limit.
 */
function lowerBound(row: LogitRow, k: number): number {
  const { blocks } = row.entries;
  const maximum = (rank: number) => descend(row, row.maxima, rank, Number.NEGATIVE_INFINITY)!.value;
  if (k <= blocks) return maximum(k);
  const share = Math.min(1, (1.2 * k) / row.vocabSize);
  const guess = maximum(Math.ceil(blocks * (1 - (1 - share) ** BLOCK_ENTRIES)));
  return row.countAtLeast(guess) >= k ? guess : Number.NEGATIVE_INFINITY;
}

function descend(row: LogitRow, level: RowLevel, k: number, low: number): Kth | null {
  let highKey = sortKey(row.max);
  let lowKey = sortKey(low);
  let above = 0;
  while (true) {
    const span = highKey - lowKey;
    const shift = Math.max(0, 32 - Math.clz32(span) - bucketBits);
    row.histogram(level, highKey, span, shift);
    const found = row.bucketOf(k - above);
    if (found === null) return null;
    above += found.above;
    if (shift === 0) return { value: keyToFloat(highKey - found.bucket), above };
    lowKey = Math.max(lowKey, highKey - (found.bucket + 1) * 2 ** shift + 1);
    highKey -= found.bucket * 2 ** shift;
  }
}
