// Graph inputs of a step's attention, filled by step-inputs.ts. Rows 0 .. decodeCount-1 of a step are decode rows, the rest
// one prefill chunk.

import type { Value } from "../../graph/graph.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";

/** Graph inputs shared by all layers. */
export interface AttentionInputs {
  /** int64 [1]: number of decode rows (b). */
  decodeCount: Value;
  /** int64 [blocks]: row that each block of the decode list belongs to. Block 0 is the null block: always masked. */
  owner: Value;
  /** int64 [depth, b]: blocks of each row, oldest first; 0 = none. */
  table: Value;
  hasPrefill: Value;
  /**
   * int64 [PART_BOUNDS]. Parts of the prefill chunk count from its end. For each its first row, then for each but part 0 the
   * number of blocks up to its end, then how many of the chunk's rows, its last ones, have logits. A part that is not there
   * starts where the one after it does.
   */
  partBounds: Value;
  /** int64: where the rows of the prefill chunk stand in its blocks, counted behind those of `begun`; see blockPlaces. */
  places: Value;
  /**
   * [2 * layers, h, kvHeads, 1, headDim]: keys and values, layer by layer, of the h positions before the prefill chunk in the
   * block that it starts in.
   */
  begun: Value;
  /** Whether there are any. */
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
  /** The same for whole blocks before the prefill chunk, in order of positions. */
  pastKeys: Value;
  pastValues: Value;
  /** Additive, 0 or -inf. [blocks, 1, 1, positionsPerBlock]. */
  mask: Value;
  /** For each part of the prefill chunk, from its end, t rows: [blocks up to its end, 1, 1, t, positionsPerBlock]. */
  partMasks: readonly Value[];
}
