// How checkpoints of a family name their tensors. Adapters name their modules in the same way.

// The linear layers of a decoder layer. The decoder knows four sites: places where linear layers with the same input
// meet. A checkpoint stores one or more per site, and adapters change stored ones.

/** Those that a decoder layer may store, in the order in which adapters list them. */
export const LINEAR_NAMES = ["q", "k", "v", "qkv", "o", "gate", "up", "gate_up", "down"] as const;
export type LinearName = (typeof LINEAR_NAMES)[number];

export const SITES = ["qkv", "o", "gateUp", "down"] as const;
export type Site = (typeof SITES)[number];

/** Those of each site, in order of their outputs. */
export type SiteMaps = Readonly<Record<Site, readonly LinearName[]>>;

export const SEPARATE_MAPS: SiteMaps = { qkv: ["q", "k", "v"], o: ["o"], gateUp: ["gate", "up"], down: ["down"] };
export const FUSED_MAPS: SiteMaps = { qkv: ["qkv"], o: ["o"], gateUp: ["gate_up"], down: ["down"] };

/** The sites of a decoder layer that have any. */
export function sitesOf({ maps }: { maps: SiteMaps }): Site[] {
  return SITES.filter((site) => maps[site].length > 0);
}

/** The stored linear layers of a decoder layer, in the order of LINEAR_NAMES. */
export function mapsOf({ maps }: { maps: SiteMaps }): LinearName[] {
  const stored = new Set(Object.values(maps).flat());
  return LINEAR_NAMES.filter((name) => stored.has(name));
}

export interface TensorNames {
  embedding: string;
  /** One row per position, added to the embedding; null = none. */
  positions: string | null;
  /** The list of layers: "layers" in "model.layers.0.mlp". */
  layers: string;
  finalNorm: string;
  /** The module of each linear layer inside a decoder layer. */
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
