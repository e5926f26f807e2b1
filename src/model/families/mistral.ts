// Mistral: Llama without biases; one sliding window, in every layer unless config.json lists the layers or sets it to
// null.

import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { windowsByLayer } from "./layer-types.ts";

export const mistral: Family = {
  name: "mistral",
  modelTypes: ["mistral"],
  architectures: ["MistralForCausalLM"],
  defaults: {
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    sliding_window: 4096,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: false,
    hidden_act: "silu",
    bos_token_id: 1,
    eos_token_id: 2,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    const window = fields.raw("sliding_window") === undefined ? null : fields.count("sliding_window");
    return { ...plainTraits, windows: windowsByLayer(fields, numLayers, window, () => true) };
  },
};
