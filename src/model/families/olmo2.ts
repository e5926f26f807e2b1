// OLMo 2: norms only on the outputs of attention and MLP, and norms of queries and keys over all heads together.

import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { NORMS_AFTER } from "./tensor-names.ts";

export const olmo2: Family = {
  name: "olmo2",
  modelTypes: ["olmo2"],
  architectures: ["Olmo2ForCausalLM"],
  defaults: {
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: false,
    hidden_act: "silu",
    eos_token_id: 50_279,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    const attentionBias = fields.flag("attention_bias", false);
    return {
      ...plainTraits,
      qkvBias: attentionBias,
      oBias: attentionBias,
      norms: NORMS_AFTER,
      qkNorm: "width",
      windows: Array<null>(numLayers).fill(null),
    };
  },
};
