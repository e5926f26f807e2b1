// Phi-3, Phi-3.5-mini, Phi-4 and Phi-4-mini: Llama with fused query-key-value and gate-up linear layers. The long versions have
// rotary factors for short and for long contexts; Phi-4-mini rotates a part of each head.

import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { FUSED_MAPS } from "./tensor-names.ts";

export const phi3: Family = {
  name: "phi3",
  modelTypes: ["phi3"],
  architectures: ["Phi3ForCausalLM"],
  defaults: {
    max_position_embeddings: 4096,
    original_max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: false,
    hidden_act: "silu",
    bos_token_id: 1,
    eos_token_id: 32_000,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    for (const key of ["attention_bias", "mlp_bias", "lm_head_bias"]) {
      if (fields.flag(key, false)) throw fields.problem(key, "false (Phi-3 has no biases)");
    }
    const window = fields.raw("sliding_window") === undefined ? null : fields.count("sliding_window");
    return {
      ...plainTraits,
      maps: FUSED_MAPS,
      scaledContext: true,
      partialRotary: true,
      windows: Array<number | null>(numLayers).fill(window),
    };
  },
};
