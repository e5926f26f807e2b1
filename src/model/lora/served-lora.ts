// Adapters in the serving graph. In a step without adapters they cost a few inputs and operations that do nothing, so
// the graph has them only once there are adapters.

import type { Graph, Value } from "../../graph/graph.ts";
import type { Feeds } from "../../graph/session.ts";
import type { Site } from "../families/tensor-names.ts";
import type { Chunk } from "../runner.ts";
import type { LoraAdapter } from "./lora-adapter.ts";

/** graph-lora.ts and kernel-lora.ts make it. */
export interface ServedLora {
  /**
   * y, [n, 1, out], with what the adapters of the rows do to x, [n, 1, in]. Nothing else may use y. `rowsOf`: picks the rows of x
   * from all rows of the step.
   */
  adapted(g: Graph, layer: number, site: Site, x: Value, y: Value, rowsOf: (all: Value) => Value): Value;
}

/** The factors of the adapters in their slots, for the inputs of the graph: graph-factors.ts and kernel-factors.ts. */
export interface ServedFactors {
  set(slot: number, adapter: LoraAdapter): void;
  delete(slot: number): void;
  /** Adds the adapter inputs of one run. Its rows are those of the chunks, in order. */
  addFeeds(feeds: Feeds, chunks: readonly Chunk[]): void;
}
