// Graph inputs of a step's attention, filled by step-inputs.ts. Rows 0 .. decodeCount-1 of a step are decode rows; the
// rest are one prefill chunk.

import type { Value } from "../../graph/graph.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";

/** Graph inputs shared by all layers. */
export interface AttentionInputs {
  /** int64 [1]: number of decode rows (b). */
  decodeCount: Value;
  /** int64 [blocks]: the row of each block in the decode list. Block 0 is the null block, which is always masked. */
  owner: Value;
  /** int64 [depth, b]: blocks of each row, oldest first; 0 = none. */
  table: Value;
  hasPrefill: Value;
  /**
   * int64 [PART_BOUNDS]. Parts of the prefill chunk are counted from its end. First the first row of each part, then for
   * each part but 0 the number of blocks up to its end, then how many of the chunk's last rows have logits. An absent part
   * starts where the one after it starts.
   */
  partBounds: Value;
  /** int64: places of the prefill chunk's rows in its blocks, after those of `begun`; see blockPlaces. */
  places: Value;
  /**
   * [2 * layers, h, kvHeads, 1, headDim]: keys and values, layer by layer, of the h positions that precede the prefill chunk
   * in its first block.
   */
  begun: Value;
  /** Whether h > 0. */
  hasBegun: Value;
}

export const PART_BOUNDS = 2 * PREFILL_PARTS;

/** Inputs of one layer. */
export interface LayerCache {
  /** Which layer. */
  index: number;
  /** [blocks, kvHeads, positionsPerBlock, headDim], read in place. */
  keys: Value;
  /** [blocks, kvHeads, headDim, positionsPerBlock]. */
  values: Value;
  /** The same for the whole blocks before the prefill chunk, in order of positions. */
  pastKeys: Value;
  pastValues: Value;
  /** Additive, 0 or -inf. [blocks, 1, 1, positionsPerBlock]. */
  mask: Value;
  /** For each part of the prefill chunk, counted from its end, of t rows: [blocks up to its end, 1, 1, t, positionsPerBlock]. */
  partMasks: readonly Value[];
}
