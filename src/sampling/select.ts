// The k-th largest entry of a row, by radix selection over the sort keys of floats: at most three counting passes,
// whatever the distribution, never a sort.

import { keyToFloat, sortKey } from "./float-order.ts";
import { histogramBuckets } from "./kernels/parts.ts";
import type { LogitRow, RowLevel } from "./row.ts";

export interface Kth {
  value: number;
  /** How many entries are larger: less than k. */
  above: number;
}

const bucketBits = Math.log2(histogramBuckets);

/** The k-th largest (k >= 1) of the entries >= low of a scanned row; null if there are fewer than k. */
export function kthLargest(row: LogitRow, k: number, low: number): Kth | null {
  // The k-th largest block maximum is no larger than the k-th largest entry, and few blocks reach it.
  const bound = k <= row.entries.blocks ? descend(row, row.maxima, k, Number.NEGATIVE_INFINITY) : null;
  return descend(row, row.entries, k, Math.max(low, bound?.value ?? low));
}

function descend(row: LogitRow, level: RowLevel, k: number, low: number): Kth | null {
  let highKey = sortKey(row.max);
  let lowKey = sortKey(low);
  let above = 0;
  while (true) {
    const span = highKey - lowKey;
    const shift = Math.max(0, 32 - Math.clz32(span) - bucketBits);
    row.histogram(level, highKey, span, shift);
    let bucket = 0;
    while (bucket < histogramBuckets && above + row.bucketCount[bucket]! < k) above += row.bucketCount[bucket++]!;
    if (bucket === histogramBuckets) return null;
    if (shift === 0) return { value: keyToFloat(highKey - bucket), above };
    lowKey = Math.max(lowKey, highKey - (bucket + 1) * 2 ** shift + 1);
    highKey -= bucket * 2 ** shift;
  }
}
