// The sizes of the pieces that a pass is cut into. They determine its memory. Nothing here needs the runtime, because
// the server computes that memory too.

import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../../model/linear/linear.ts";

/** The most rows that a stage takes at a time. */
export const SLICE_ROWS = 256;

/** Queries per attention call. Measured: fewer make the calls costly, more waste work above the diagonal. */
export const ATTENTION_CHUNK = 128;

/** Rows of logits that exist at once: a few megabytes, and enough rows for a fast product. */
export function headPiece({ vocabSize }: ModelConfig): number {
  return Math.max(64, Math.min(256, Math.floor(2 ** 20 / vocabSize)));
}

/** Positions per block that attention is summed in; null = all at once. Rounded weights need the blocks of serving. */
export function attentionBlock(weights: WeightType, served: number): number | null {
  return weights === "float32" ? null : served;
}
