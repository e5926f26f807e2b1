// GPT-2: learned positions instead of rotation, layer norms with biases, a plain MLP, fused query-key-value linear layers, and
// weights stored [in, out] (Conv1D).

import { type Family, plainTraits } from "./family.ts";
import { GPT2_NAMES, GPT2_NORMS, type SiteMaps } from "./tensor-names.ts";

const MAPS: SiteMaps = { qkv: ["qkv"], o: ["o"], gateUp: ["up"], down: ["down"] };

export const gpt2: Family = {
  name: "gpt2",
  modelTypes: ["gpt2"],
  architectures: ["GPT2LMHeadModel"],
  keys: {
    hidden_size: "n_embd",
    num_hidden_layers: "n_layer",
    num_attention_heads: "n_head",
    intermediate_size: "n_inner",
    max_position_embeddings: "n_positions",
    rms_norm_eps: "layer_norm_epsilon",
    hidden_act: "activation_function",
  },
  defaults: {
    n_positions: 1024,
    layer_norm_epsilon: 1e-5,
    activation_function: "gelu_new",
    tie_word_embeddings: true,
    bos_token_id: 50_256,
    eos_token_id: 50_256,
  },
  // The first published files have no prefix.
  tensorPrefixes: ["transformer.", ""],
  names: GPT2_NAMES,
  traits(fields, numLayers) {
    for (const key of ["scale_attn_by_inverse_layer_idx", "add_cross_attention"]) {
      if (fields.flag(key, false)) throw fields.problem(key, "false (it is not supported)");
    }
    return {
      ...plainTraits,
      qkvBias: true,
      oBias: true,
      mlpBias: true,
      norm: "layer",
      norms: GPT2_NORMS,
      mlp: "plain",
      maps: MAPS,
      intermediateSize: 4 * fields.count("hidden_size"),
      attentionScale: fields.flag("scale_attn_weights", true) ? null : 1,
      rotates: Array<boolean>(numLayers).fill(false),
      windows: Array<null>(numLayers).fill(null),
    };
  },
};
