// Gemma 3, text only or the text part of the multimodal checkpoints: norms before and after both blocks, stored as
// weight - 1; scaled embeddings; GeGLU; five sliding layers for every full one, each kind with its own RoPE base.

import { type Family, plainTraits } from "./family.ts";
import { windowsByLayer } from "./layer-types.ts";
import { NORMS_AROUND, USUAL_NAMES } from "./tensor-names.ts";

export const gemma3: Family = {
  name: "gemma3",
  modelTypes: ["gemma3_text", "gemma3"],
  architectures: ["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
  // Multimodal checkpoints leave most of these out.
  defaults: {
    vocab_size: 262_208,
    hidden_size: 2304,
    intermediate_size: 9216,
    num_hidden_layers: 26,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 256,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-6,
    query_pre_attn_scalar: 256,
    sliding_window: 4096,
    tie_word_embeddings: true,
    hidden_activation: "gelu_pytorch_tanh",
    bos_token_id: 2,
    eos_token_id: 1,
  },
  tensorPrefixes: ["model.", "language_model.model.", "model.language_model."],
  names: USUAL_NAMES,
  traits(fields, numLayers) {
    if (fields.raw("attn_logit_softcapping") !== undefined) {
      throw fields.problem("attn_logit_softcapping", "null (capped attention scores are not supported)");
    }
    if (fields.flag("use_bidirectional_attention", false)) {
      throw fields.problem("use_bidirectional_attention", "false (this serves causal models)");
    }
    const attentionBias = fields.flag("attention_bias", false);
    const softcapped = fields.raw("final_logit_softcapping") !== undefined;
    const pattern = fields.count("sliding_window_pattern", 6);
    return {
      ...plainTraits,
      norms: NORMS_AROUND,
      qkvBias: attentionBias,
      oBias: attentionBias,
      qkNorm: "head",
      normWeightOffset: 1,
      embeddingScale: Math.sqrt(fields.count("hidden_size")),
      attentionScale: 1 / Math.sqrt(fields.positive("query_pre_attn_scalar")),
      logitSoftcap: softcapped ? fields.positive("final_logit_softcapping") : null,
      activationKey: "hidden_activation",
      scaledContext: true,
      windows: windowsByLayer(
        fields,
        numLayers,
        fields.count("sliding_window"),
        (layer) => (layer + 1) % pattern !== 0,
      ),
      rope: {
        full: { thetaKey: "rope_theta", defaultTheta: 1_000_000, scaled: true },
        sliding: { thetaKey: "rope_local_base_freq", defaultTheta: 10_000, scaled: false },
      },
    };
  },
};
