// min_p, then top_k: finds the lowest logit that survives, so that a single number says which tokens may be drawn. All
// entries equal to the k-th largest survive. top_p comes later and is part of the draw (see draw.ts).

import type { LogitRow } from "./row.ts";
import { kthLargest } from "./select.ts";

/** The lowest surviving logit of a scanned row. minP and topK: 0 = off. */
export function survivorFloor(row: LogitRow, temperature: number, minP: number, topK: number): number {
  let floor = row.weightlessBelow(temperature);
  // Probability < minP * the largest probability, in logits.
  if (minP > 0) floor = Math.max(floor, Math.fround(row.max + temperature * Math.log(minP)));
  if (topK > 0 && topK < row.vocabSize) floor = kthLargest(row, topK, floor)?.value ?? floor;
  return floor;
}
