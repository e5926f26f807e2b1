// How a pass is cut into pieces of bounded size: plain numbers, which the memory of a pass follows from. Without the runtime,
// because the server asks too what fits.

import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../../model/linear/linear.ts";

/** The most rows that a stage gets at a time. */
export const SLICE_ROWS = 256;

/** Queries per attention call. Measured: with fewer the calls themselves cost, with more the work above the diagonal does. */
export const ATTENTION_CHUNK = 128;

/** Rows of logits that exist at once: a few megabytes, but enough rows for the product to be fast. */
export function headPiece({ vocabSize }: ModelConfig): number {
  return Math.max(64, Math.min(256, Math.floor(2 ** 20 / vocabSize)));
}

/** Positions per block that attention is summed in: serving's where rounded weights need its very bits; null = all at once. */
export function attentionBlock(weights: WeightType, served: number): number | null {
  return weights === "float32" ? null : served;
}
