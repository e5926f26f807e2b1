// Qwen 3 with sparse experts: Qwen 3 in which most layers have experts instead of an MLP.

import type { ConfigFields } from "../checkpoint/config-fields.ts";
import { type ExpertsConfig, type Family, llamaNaming, plainTraits } from "./family.ts";
import { qwenDefaults, qwenWindows } from "./qwen2.ts";

export const qwen3Moe: Family = {
  name: "qwen3_moe",
  modelTypes: ["qwen3_moe"],
  architectures: ["Qwen3MoeForCausalLM"],
  defaults: {
    ...qwenDefaults,
    ...{ num_key_value_heads: 4, max_window_layers: 0 },
    ...{ moe_intermediate_size: 768, num_experts_per_tok: 8, decoder_sparse_step: 1 },
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    const attentionBias = fields.flag("attention_bias", false);
    const windows = qwenWindows(fields, numLayers);
    const experts = expertsByLayer(fields, numLayers);
    return { ...plainTraits, qkvBias: attentionBias, oBias: attentionBias, qkNorm: "head", windows, experts };
  },
};

function expertsByLayer(fields: ConfigFields, numLayers: number): (ExpertsConfig | null)[] {
  // transformers 5 writes num_local_experts.
  const key = fields.raw("num_experts") === undefined ? "num_local_experts" : "num_experts";
  const count = fields.between(key, 0, 4096, 128);
  const experts: ExpertsConfig = {
    count,
    perToken: fields.count("num_experts_per_tok"),
    intermediateSize: fields.count("moe_intermediate_size"),
    normalised: fields.flag("norm_topk_prob", false),
  };
  if (count > 0 && experts.perToken > count) {
    throw fields.problem("num_experts_per_tok", `at most the ${count} experts`);
  }
  const step = fields.count("decoder_sparse_step");
  const dense = new Set(fields.wholeNumbers("mlp_only_layers"));
  const isSparse = (layer: number) => count > 0 && !dense.has(layer) && (layer + 1) % step === 0;
  return Array.from({ length: numLayers }, (_, layer) => (isSparse(layer) ? experts : null));
}
