// Builds the serving graph of a checkpoint. One run advances any number of sequences by one token each and one sequence
// by a prefill chunk. Reads the weights tensor by tensor. A map that is stored rounded is read and rounded in pieces,
// and is never whole in float32.
//
// Inputs, beside those of attention/inputs.ts and lora/lora-inputs.ts:
//   x [n, 1, hidden] embeddings · rows int64 [n, 1] = 0 .. n-1 · cos.N, sin.N [n, rotated / 2] per distinct RoPE
//   wanted int64 [m]: rows whose logits are wanted
// Outputs: logits [m, 1, vocab], and what the cache must store. For the decode rows: new_keys and new_values [layers * b,
// kvHeads, 1, headDim], layer by layer. For the prefill chunk: block_keys.LAYER and block_values.LAYER in the cache's layout.

import { Graph, type Value } from "../graph/graph.ts";
import { add, choose, concat, gather, slice } from "../graph/ops.ts";
import { type AttentionInputs, type LayerCache, PART_BOUNDS } from "./attention/inputs.ts";
import { pagedAttention } from "./attention/paged-attention.ts";
import { PREFILL_PARTS } from "./attention/prefill-pieces.ts";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { decoderLayer, finishLogits, type LayerParts } from "./decoder.ts";
import { chosenExperts } from "./expert-rows.ts";
import type { ExpertParts } from "./experts.ts";
import type { ExpertsConfig } from "./families/family.ts";
import { loraInputs } from "./lora/lora-inputs.ts";
import { gatedMlp, type MlpLinear } from "./mlp.ts";
import { distinctRopes, rotaryWidth } from "./rotary-table.ts";
import { type WeightOptions, WeightSource } from "./weight-source.ts";

export interface DecoderGraphOptions extends WeightOptions {
  positionsPerBlock: number;
  /** Whether the graph has inputs for adapters. */
  lora: boolean;
}

export function buildDecoderGraph(checkpoint: Checkpoint, options: DecoderGraphOptions): Graph {
  const { config } = checkpoint;
  const g = new Graph();
  const weights = new WeightSource(g, checkpoint, options);
  const ropes = distinctRopes(config.layers);
  const turns = ropes.specs.map((spec, i) => {
    const shape = ["n", rotaryWidth(spec, config.headDim)];
    return { cos: g.input(`cos.${i}`, shape), sin: g.input(`sin.${i}`, shape) };
  });
  const rows = g.input("rows", ["n", 1], "int64");
  const wanted = g.input("wanted", ["m"], "int64");
  const shared = attentionInputs(g, config);
  const masks = maskInputs(g, config, options.positionsPerBlock);
  const lora = options.lora ? loraInputs(g, config) : null;

  let x = g.input("x", ["n", 1, config.hiddenSize]);
  const newKeys: Value[] = [];
  const newValues: Value[] = [];
  const newBlocks: Value[][] = [];
  for (const [index, layer] of config.layers.entries()) {
    const mask = masks.get(layer.window)!;
    // In the last layer the keys and values of all rows are stored, but only rows with logits go on.
    const last = index === config.numLayers - 1;
    const parts: LayerParts = {
      norms: weights.norms(index),
      rope: turns[ropes.ofLayer[index] ?? -1] ?? null,
      linear: (at, site, input) => {
        const y = weights.site(at, index, site, input);
        if (lora === null) return y;
        const rowsOf = (x: Value) => (last && site !== "qkv" ? gather(at, x, wanted) : x);
        return add(at, y, lora.delta(at, index, site, input, rowsOf));
      },
      experts: layer.experts === null ? null : servedExperts(weights, layer.experts, config, index),
      attention: (at, ...projections) => {
        const cache = { ...cacheInputs(g, config, options.positionsPerBlock, index), ...mask };
        const attended = pagedAttention(at, config, shared, cache, projections, last);
        newBlocks.push([attended.newKeys, attended.newValues]);
        return attended.rows;
      },
      onward: (at, x) => (last ? gather(at, x, wanted) : x),
    };
    const result = decoderLayer(g, config, parts, x, rows);
    x = result.x;
    newKeys.push(result.k);
    newValues.push(result.v);
  }
  g.output("logits", finishLogits(g, config, weights.head(g, weights.finalNorm(g, x))));
  const [decodeKeys, decodeValues] = ofDecodeRows(g, shared, [newKeys, newValues]);
  g.output("new_keys", decodeKeys!);
  g.output("new_values", decodeValues!);
  for (const [index, [keys, values]] of newBlocks.entries()) {
    const names = blockOutputs(index);
    g.output(names.keys, keys!);
    g.output(names.values, values!);
  }
  return g;
}

function servedExperts(
  weights: WeightSource,
  experts: ExpertsConfig,
  { hiddenSize, activation }: ModelConfig,
  layer: number,
): ExpertParts {
  const sizes = { activation, intermediateSize: experts.intermediateSize };
  return {
    config: experts,
    router: (g, x) => weights.router(g, layer, x),
    mlp: (g, x, bounds) =>
      chosenExperts(g, x, bounds, hiddenSize, (branch, expert, rows) => {
        const linear: MlpLinear = (at, site, value) => weights.expertSite(at, layer, expert, site, value);
        return gatedMlp(branch, sizes, linear, rows);
      }),
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
