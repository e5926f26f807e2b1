// Qwen 3 (dense): a norm on every query and key head instead of Qwen 2's biases, and a head size of its own.

import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { qwenDefaults, qwenWindows } from "./qwen2.ts";

export const qwen3: Family = {
  name: "qwen3",
  modelTypes: ["qwen3"],
  architectures: ["Qwen3ForCausalLM"],
  defaults: { ...qwenDefaults, head_dim: 128 },
  ...llamaNaming,
  traits(fields, numLayers) {
    const attentionBias = fields.flag("attention_bias", false);
    const windows = qwenWindows(fields, numLayers);
    return { ...plainTraits, qkvBias: attentionBias, oBias: attentionBias, qkNorm: "head", windows };
  },
};
