// How checkpoints of a family name their tensors. Adapters name their modules in the same way.

import type { LinearName } from "../checkpoint/sites.ts";

export interface TensorNames {
  embedding: string;
  /** One row per position, added to the embedding; null = none. */
  positions: string | null;
  /** The list of layers: "layers" in "model.layers.0.mlp". */
  layers: string;
  finalNorm: string;
  /** The module of each linear map inside a layer. */
  modules: Readonly<Record<LinearName, string>>;
  /** Whether linear weights are stored [in, out]. */
  transposed: boolean;
}

/** A norm's module inside a layer, by place; null = no norm there. */
export interface NormNames {
  /** On the input of attention. */
  attention: string | null;
  /** On the output of attention, before the residual is added. */
  attentionPost: string | null;
  /** On the input of the MLP. */
  mlp: string | null;
  /** On the output of the MLP. */
  mlpPost: string | null;
}

export const NORMS_BEFORE: NormNames = {
  attention: "input_layernorm",
  attentionPost: null,
  mlp: "post_attention_layernorm",
  mlpPost: null,
};

/** With norms after attention, "post_attention" means what it says. */
export const NORMS_AROUND: NormNames = {
  attention: "input_layernorm",
  attentionPost: "post_attention_layernorm",
  mlp: "pre_feedforward_layernorm",
  mlpPost: "post_feedforward_layernorm",
};

export const NORMS_AFTER: NormNames = {
  attention: null,
  attentionPost: "post_attention_layernorm",
  mlp: null,
  mlpPost: "post_feedforward_layernorm",
};

export const USUAL_NAMES: TensorNames = {
  embedding: "embed_tokens",
  positions: null,
  layers: "layers",
  finalNorm: "norm",
  modules: {
    q: "self_attn.q_proj",
    k: "self_attn.k_proj",
    v: "self_attn.v_proj",
    qkv: "self_attn.qkv_proj",
    o: "self_attn.o_proj",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    gate_up: "mlp.gate_up_proj",
    down: "mlp.down_proj",
  },
  transposed: false,
};

export const GPT2_NORMS: NormNames = { attention: "ln_1", attentionPost: null, mlp: "ln_2", mlpPost: null };

export const GPT2_NAMES: TensorNames = {
  embedding: "wte",
  positions: "wpe",
  layers: "h",
  finalNorm: "ln_f",
  modules: { ...USUAL_NAMES.modules, qkv: "attn.c_attn", o: "attn.c_proj", up: "mlp.c_fc", down: "mlp.c_proj" },
  transposed: true,
};
