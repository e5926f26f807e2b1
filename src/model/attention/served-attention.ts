// The attention of the serving graph, in one of two forms: operations of the runtime (graph-attention.ts), or one
// operation of the native module where that runs (kernel-attention.ts).

import type { Graph, Value } from "../../graph/graph.ts";
import type { Heads } from "../decoder.ts";

export interface ServedAttention {
  /** Layers come in order. Returns [m, 1, numHeads * headDim] for these rows (int64 [m]), or for all if `wanted` is null. */
  attend(at: Graph, layer: number, heads: Heads, wanted: Value | null): Value;
  /** Declares what the graph returns for the cache, once all layers are there. */
  finish(): void;
}
