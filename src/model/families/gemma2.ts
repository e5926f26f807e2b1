// Gemma 2: norms before and after both blocks, stored as weight - 1; scaled embeddings; GeGLU; soft caps on attention
// scores and logits; every other layer has a sliding window.

import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { windowsByLayer } from "./layer-types.ts";
import { NORMS_AROUND } from "./tensor-names.ts";

export const gemma2: Family = {
  name: "gemma2",
  modelTypes: ["gemma2"],
  architectures: ["Gemma2ForCausalLM"],
  defaults: {
    num_key_value_heads: 4,
    head_dim: 256,
    max_position_embeddings: 8192,
    rms_norm_eps: 1e-6,
    query_pre_attn_scalar: 256,
    sliding_window: 4096,
    final_logit_softcapping: 30,
    attn_logit_softcapping: 50,
    tie_word_embeddings: true,
    hidden_activation: "gelu_pytorch_tanh",
    bos_token_id: 2,
    eos_token_id: 1,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    if (fields.flag("use_bidirectional_attention", false)) {
      throw fields.problem("use_bidirectional_attention", "false (this serves causal models)");
    }
    const attentionBias = fields.flag("attention_bias", false);
    const cap = (key: string) => (fields.raw(key) === undefined ? null : fields.positive(key));
    return {
      ...plainTraits,
      qkvBias: attentionBias,
      oBias: attentionBias,
      norms: NORMS_AROUND,
      normWeightOffset: 1,
      embeddingScale: Math.sqrt(fields.count("hidden_size")),
      attentionScale: 1 / Math.sqrt(fields.positive("query_pre_attn_scalar")),
      attentionSoftcap: cap("attn_logit_softcapping"),
      logitSoftcap: cap("final_logit_softcapping"),
      activationKey: "hidden_activation",
      windows: windowsByLayer(fields, numLayers, fields.count("sliding_window"), (layer) => layer % 2 === 0),
    };
  },
};
