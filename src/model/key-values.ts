// The memory of keys and values, and how a run's attention gets at it: one for each form of attention
// (attention/served-attention.ts).

import type { Feeds, Outputs } from "../graph/session.ts";
import type { Chunk } from "./runner.ts";

/** A piece of a chunk that is computed in one run. */
export interface Piece extends Chunk {
  /** Index of its chunk in the step. */
  of: number;
}

export interface RunParts {
  /** The other inputs of attention. */
  feeds: Feeds;
  /** Names of the outputs for the cache. */
  outputs: readonly string[];
  /** Memory that the runtime writes some of them to. */
  into: Outputs;
  /** Stores the outputs that are not in place yet. */
  remember(outputs: Outputs): void;
}

export interface KeyValues {
  /** Inputs of attention that all runs share. */
  readonly kept: Feeds;
  /** The runs that compute these chunks, in order. Pieces of one token come first in a run. */
  runsOf(chunks: readonly Chunk[]): Piece[][];
  /** For one run of these pieces, whose rows are in this order. A piece without blocks is not stored. */
  prepare(pieces: readonly Piece[]): RunParts;
  copyBlock(from: number, to: number): void;
  clearBlock(block: number, first: number): void;
}
