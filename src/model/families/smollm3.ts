// SmolLM3: Llama in which some layers, usually every fourth, do not rotate queries and keys.

import type { ConfigFields } from "../checkpoint/config-fields.ts";
import { type Family, llamaNaming, oneRope, plainTraits } from "./family.ts";
import { windowsByLayer } from "./layer-types.ts";

export const smollm3: Family = {
  name: "smollm3",
  modelTypes: ["smollm3"],
  architectures: ["SmolLM3ForCausalLM"],
  defaults: {
    num_key_value_heads: 4,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
    hidden_act: "silu",
    bos_token_id: 128_000,
    eos_token_id: 128_001,
  },
  ...llamaNaming,
  traits(fields, numLayers) {
    const attentionBias = fields.flag("attention_bias", false);
    const rotates = rotatingLayers(fields, numLayers);
    const slides = fields.flag("use_sliding_window", false) && fields.raw("sliding_window") !== undefined;
    const window = slides ? fields.count("sliding_window") : null;
    return {
      ...plainTraits,
      qkvBias: attentionBias,
      oBias: attentionBias,
      mlpBias: fields.flag("mlp_bias", false),
      rotates,
      windows: windowsByLayer(fields, numLayers, window, (layer) => !rotates[layer]),
      rope: oneRope(2_000_000),
    };
  },
};

/** In `no_rope_layers` a 1 means that the layer does rotate. */
function rotatingLayers(fields: ConfigFields, numLayers: number): boolean[] {
  const key = "no_rope_layers";
  const given = fields.raw(key);
  if (given === undefined) {
    const interval = fields.count("no_rope_layer_interval", 4);
    return Array.from({ length: numLayers }, (_, layer) => (layer + 1) % interval !== 0);
  }
  const known = Array.isArray(given) && given.every((value) => value === 0 || value === 1);
  if (!known || given.length < numLayers) {
    throw fields.problem(key, `a list of ${numLayers} numbers, 1 where the layer rotates and 0 where it does not`);
  }
  return given.slice(0, numLayers).map((value) => value === 1);
}
