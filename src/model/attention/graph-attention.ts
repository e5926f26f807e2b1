// Attention of the serving graph in operations of the runtime (paged-attention.ts): its inputs, and outputs for what the
// cache must store. For the decode rows: new_keys and new_values [layers * b, kvHeads, 1, headDim], layer by layer. For the
// prefill chunk: block_keys.LAYER and block_values.LAYER in the cache's layout.

import type { Graph, Value } from "../../graph/graph.ts";
import { choose, concat, gather, slice } from "../../graph/ops.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { turnedHeads } from "../decoder.ts";
import { type AttentionInputs, type LayerCache, PART_BOUNDS } from "./inputs.ts";
import { pagedAttention } from "./paged-attention.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";
import type { ServedAttention } from "./served-attention.ts";

export function graphAttention(g: Graph, config: ModelConfig, positionsPerBlock: number): ServedAttention {
  const shared = attentionInputs(g, config);
  const masks = maskInputs(g, config, positionsPerBlock);
  const newKeys: Value[] = [];
  const newValues: Value[] = [];
  const newBlocks: Value[][] = [];
  return {
    attend(at, layer, heads, wanted) {
      const projections = turnedHeads(at, config, heads);
      const cache = {
        ...cacheInputs(g, config, positionsPerBlock, layer),
        ...masks.get(config.layers[layer]!.window)!,
      };
      const attended = pagedAttention(at, config, shared, cache, projections, wanted !== null);
      newBlocks.push([attended.newKeys, attended.newValues]);
      newKeys.push(projections[1]);
      newValues.push(projections[2]);
      return wanted === null ? attended.rows : gather(at, attended.rows, wanted);
    },
    finish() {
      const [decodeKeys, decodeValues] = ofDecodeRows(g, shared, [newKeys, newValues]);
      g.output("new_keys", decodeKeys!);
      g.output("new_values", decodeValues!);
      for (const [index, [keys, values]] of newBlocks.entries()) {
        const names = blockOutputs(index);
        g.output(names.keys, keys!);
        g.output(names.values, values!);
      }
    },
  };
}

/** Output names of a layer's prefill blocks. */
export function blockOutputs(layer: number): { keys: string; values: string } {
  return { keys: `block_keys.${layer}`, values: `block_values.${layer}` };
}

/** Each list: [n, ..] for every layer -> [layers * b, ..]. */
function ofDecodeRows(g: Graph, shared: AttentionInputs, lists: readonly (readonly Value[])[]): Value[] {
  const shapes = lists.map(([first]) => ["layers*b", ...first!.shape.slice(1)]);
  return choose(g, shared.hasPrefill, shapes, {
    yes: (sub) =>
      lists.map((layers) => {
        const rows = layers.map((x) => slice(sub, x, 0, 0, shared.decodeCount, "b"));
        return concat(sub, rows, 0);
      }),
    no: (sub) => lists.map((layers) => concat(sub, layers, 0)),
  });
}

function attentionInputs(g: Graph, { numLayers, numKvHeads, headDim }: ModelConfig): AttentionInputs {
  return {
    decodeCount: g.input("decode_count", [1], "int64"),
    owner: g.input("owner", ["blocks"], "int64"),
    table: g.input("table", ["depth", "b"], "int64"),
    hasPrefill: g.input("has_prefill", [], "bool"),
    partBounds: g.input("part_bounds", [PART_BOUNDS], "int64"),
    places: g.input("places", ["places"], "int64"),
    hasBegun: g.input("has_begun", [], "bool"),
    begun: g.input("begun", [2 * numLayers, "begun", numKvHeads, 1, headDim]),
  };
}

/** One set of masks per distinct sliding window, named by the window or "full". */
function maskInputs(g: Graph, config: ModelConfig, positionsPerBlock: number) {
  const masks = new Map<number | null, Pick<LayerCache, "mask" | "partMasks">>();
  for (const { window } of config.layers) {
    if (masks.has(window)) continue;
    const name = window ?? "full";
    masks.set(window, {
      mask: g.input(`mask.${name}`, ["blocks", 1, 1, positionsPerBlock]),
      partMasks: Array.from({ length: PREFILL_PARTS }, (_, i) =>
        g.input(`part_mask.${name}.${i}`, [`seen.${i}`, 1, 1, `t.${i}`, positionsPerBlock]),
      ),
    });
  }
  return masks;
}

function cacheInputs(g: Graph, config: ModelConfig, positionsPerBlock: number, layer: number) {
  const { numKvHeads, headDim } = config;
  return {
    index: layer,
    keys: g.input(`keys.${layer}`, ["blocks", numKvHeads, positionsPerBlock, headDim]),
    values: g.input(`values.${layer}`, ["blocks", numKvHeads, headDim, positionsPerBlock]),
    pastKeys: g.input(`past_keys.${layer}`, ["past", numKvHeads, positionsPerBlock, headDim]),
    pastValues: g.input(`past_values.${layer}`, ["past", numKvHeads, headDim, positionsPerBlock]),
  };
}
