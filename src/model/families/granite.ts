// Granite 3 and later, dense: Llama with factors on embeddings, attention scores, residuals and logits.

import { type Family, llamaNaming, plainTraits } from "./family.ts";

export const granite: Family = {
  name: "granite",
  modelTypes: ["granite"],
  architectures: ["GraniteForCausalLM"],
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
      embeddingScale: fields.positive("embedding_multiplier", 1),
      attentionScale: fields.positive("attention_multiplier", 1),
      residualScale: fields.positive("residual_multiplier", 1),
      logitScale: 1 / fields.positive("logits_scaling", 1),
      windows: Array<null>(numLayers).fill(null),
    };
  },
};
