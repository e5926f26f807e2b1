// Floating-point operations that a prefill needs. A multiplication and an addition count as two. Only necessary work counts:
// causal attention as half a square, and the output head for one position. In the last layer, all positions but the last
// count only up to their keys and values.

import { linearShape } from "../../src/model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { mapsOf } from "../../src/model/families/tensor-names.ts";

/** Linear layers and the output head. Norms and biases do not count. */
export function weightCounts(config: ModelConfig): { layers: number; head: number; embedding: number } {
  const perLayer = mapsOf(config.layers[0]!).reduce((sum, name) => {
    const [out, inputs] = linearShape(config, name);
    return sum + out * inputs;
  }, 0);
  const vocabulary = config.vocabSize * config.hiddenSize;
  const embedding = config.tieWordEmbeddings ? 0 : vocabulary;
  return { layers: perLayer * config.numLayers, head: vocabulary, embedding };
}

/** From a prompt of `tokens` to the logits of its last position, for a model without sliding windows. */
export function prefillFlops(config: ModelConfig, tokens: number): number {
  const { layers, head } = weightCounts(config);
  const keysAndValues = 2 * config.numKvHeads * config.headDim * config.hiddenSize;
  const perLayer = layers / config.numLayers;
  const lastLayer = keysAndValues * tokens + (perLayer - keysAndValues);
  const pairs = ((config.numLayers - 1) * tokens * (tokens + 1)) / 2 + tokens;
  return 2 * ((layers - perLayer) * tokens + lastLayer) + attentionFlops(config, pairs) + 2 * head;
}

/** The same with every layer counted whole, which is the common convention. */
export function wholeLayersFlops(config: ModelConfig, tokens: number): number {
  const { layers, head } = weightCounts(config);
  return 2 * layers * tokens + attentionFlops(config, (config.numLayers * tokens * (tokens + 1)) / 2) + 2 * head;
}

/** Attention over this many pairs of a query and a key: the score and the value's share. */
function attentionFlops({ numHeads, headDim }: ModelConfig, pairs: number): number {
  return 2 * 2 * pairs * numHeads * headDim;
}
