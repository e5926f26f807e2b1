// Builds the serving graph of a checkpoint. One run advances any number of sequences by one token each and one sequence
// by a prefill chunk. Reads the weights tensor by tensor. A linear layer that is stored rounded is read and rounded in pieces,
// and is never whole in float32.
//
// Inputs, beside those of attention (attention/served-attention.ts) and lora/served-lora.ts:
//   x [n, 1, hidden] embeddings · rows int64 [n, 1] = 0 .. n-1 · cos.N, sin.N [n, rotated / 2] per distinct RoPE
//   wanted int64 [m]: rows whose logits are wanted
// Output: logits [m, 1, vocab], and what attention returns for the cache.

import { Graph, type Value } from "../graph/graph.ts";
import { gather } from "../graph/ops.ts";
import { hasKernels } from "../graph/session.ts";
import type { CacheType } from "./attention/cache-type.ts";
import { graphAttention } from "./attention/graph-attention.ts";
import { kernelAttention } from "./attention/kernel-attention.ts";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { decoderLayer, finishLogits, type LayerParts } from "./decoder.ts";
import { chosenExperts } from "./expert-rows.ts";
import type { ExpertParts } from "./experts.ts";
import type { ExpertsConfig } from "./families/family.ts";
import { graphLora } from "./lora/graph-lora.ts";
import { kernelLora } from "./lora/kernel-lora.ts";
import { gatedMlp, type MlpLinear } from "./mlp.ts";
import { distinctRopes, rotaryWidth } from "./rotary-table.ts";
import { type WeightOptions, WeightSource } from "./weight-source.ts";

export interface DecoderGraphOptions extends WeightOptions {
  positionsPerBlock: number;
  /** Only the native module takes float16. */
  cacheType: CacheType;
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
  const { positionsPerBlock, cacheType } = options;
  const attention = hasKernels
    ? kernelAttention(g, config, positionsPerBlock, cacheType)
    : graphAttention(g, config, positionsPerBlock);
  const lora = options.lora ? (hasKernels ? kernelLora : graphLora)(g, config) : null;

  let x = g.input("x", ["n", 1, config.hiddenSize]);
  for (const [index, layer] of config.layers.entries()) {
    // In the last layer the keys and values of all rows are stored, but only rows with logits go on.
    const last = index === config.numLayers - 1;
    const parts: LayerParts = {
      norms: weights.norms(index),
      rope: turns[ropes.ofLayer[index] ?? -1] ?? null,
      linear: (at, site, input) => {
        const y = weights.site(at, index, site, input);
        if (lora === null) return y;
        const rowsOf = (x: Value) => (last && site !== "qkv" ? gather(at, x, wanted) : x);
        return lora.adapted(at, index, site, input, y, rowsOf);
      },
      experts: layer.experts === null ? null : servedExperts(weights, layer.experts, config, index),
      attention: (at, heads) => attention.attend(at, index, heads, last ? wanted : null),
      onward: (at, x) => (last ? gather(at, x, wanted) : x),
    };
    x = decoderLayer(g, config, parts, x, rows);
  }
  g.output("logits", finishLogits(g, config, weights.head(g, weights.finalNorm(g, x))));
  attention.finish();
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
