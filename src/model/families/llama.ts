// Llama 1 to 3 and the many models with its architecture: optional biases, all layers see everything.

import { type Family, llamaNaming, plainTraits } from "./family.ts";

export const llama: Family = {
  name: "llama",
  modelTypes: ["llama"],
  architectures: ["LlamaForCausalLM"],
  defaults: {
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: false,
    hidden_act: "silu",
    bos_token_id: 1,
    eos_token_id: 2,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    const attentionBias = fields.flag("attention_bias", false);
    return {
      ...plainTraits,
      qkvBias: attentionBias,
      oBias: attentionBias,
      mlpBias: fields.flag("mlp_bias", false),
      windows: Array<null>(numLayers).fill(null),
    };
  },
};
