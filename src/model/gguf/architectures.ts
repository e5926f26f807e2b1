// The architectures of GGUF files that can be served: the family of each, how its tensors are called, and the fields of
// config.json that only it has. What all have in common is in gguf-config.ts.

import type { JsonObject } from "../../json/json.ts";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import type { GgufFields } from "./open-gguf.ts";

export interface Architecture {
  /** `model_type` of the config.json that the file stands for. */
  readonly modelType: string;
  /**
   * llama.cpp rotates neighbouring dimensions here and transformers the two halves of a head, so the rows of the query and
   * key maps are interleaved in the file: 0, half, 1, half + 1, ...
   */
  readonly interleaved: boolean;
  /** Modules of a layer with another name than in MODULES. */
  readonly modules?: Readonly<Record<string, string>>;
  /** Modules outside of the layers, if they have other names than in OUTSIDE_LAYERS. */
  readonly outside?: Readonly<Record<string, string>>;
  /** Whether it has experts. */
  readonly sparse?: true;
  /** Where the file keeps the epsilon of norms, if not under the usual key. */
  readonly epsilon?: string;
  /** Fields of config.json that only this architecture has. */
  config?(fields: GgufFields): JsonObject;
}

/** Modules of a layer: name in the file -> name in transformers. */
const MODULES: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_qkv: "self_attn.qkv_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  post_attention_norm: "post_attention_layernorm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
  post_ffw_norm: "post_feedforward_layernorm",
};
const OUTSIDE_LAYERS: Readonly<Record<string, string>> = {
  token_embd: "model.embed_tokens",
  output_norm: "model.norm",
  output: "lm_head",
};
/** With a norm after attention, the one before the MLP has a name of its own. */
const NORMS_AROUND = { ffn_norm: "pre_feedforward_layernorm" };
/** Experts are stacked: see STACKED. */
const EXPERTS = { ffn_gate_inp: "mlp.gate" };
const GPT2_OUTSIDE = {
  token_embd: "transformer.wte",
  position_embd: "transformer.wpe",
  output_norm: "transformer.ln_f",
};
const GPT2_MODULES = {
  ...{ attn_norm: "ln_1", attn_qkv: "attn.c_attn", attn_output: "attn.c_proj" },
  ...{ ffn_norm: "ln_2", ffn_up: "mlp.c_fc", ffn_down: "mlp.c_proj" },
};
/** Tensors [experts, out, in]: the linear layers of all experts of a decoder layer. */
const STACKED: Readonly<Record<string, string>> = {
  ...{ ffn_gate_exps: "gate_proj", ffn_up_exps: "up_proj", ffn_down_exps: "down_proj" },
};

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  // Mistral's files say "llama" too. llama.cpp ignores its window, and later versions have none.
  llama: { modelType: "llama", interleaved: true, config: llamaConfig },
  qwen2: { modelType: "qwen2", interleaved: false },
  qwen3: { modelType: "qwen3", interleaved: false },
  qwen3moe: { modelType: "qwen3_moe", interleaved: false, sparse: true, modules: EXPERTS, config: qwen3MoeConfig },
  gemma2: { modelType: "gemma2", interleaved: false, modules: NORMS_AROUND, config: gemma2Config },
  gemma3: { modelType: "gemma3_text", interleaved: false, modules: NORMS_AROUND, config: gemma3Config },
  granite: { modelType: "granite", interleaved: true, config: graniteConfig },
  smollm3: { modelType: "smollm3", interleaved: true },
  olmo2: { modelType: "olmo2", interleaved: false, config: olmo2Config },
  phi3: { modelType: "phi3", interleaved: false, modules: { ffn_up: "mlp.gate_up_proj" }, config: phi3Config },
  gpt2: {
    ...{ modelType: "gpt2", interleaved: false, modules: GPT2_MODULES, outside: GPT2_OUTSIDE },
    ...{ epsilon: "attention.layer_norm_epsilon", config: gpt2Config },
  },
};

/** Throws an error that lists the supported ones if the file's is none of them. */
export function architectureOf(path: string, name: string): Architecture {
  const found = Object.hasOwn(ARCHITECTURES, name) ? ARCHITECTURES[name] : undefined;
  if (found !== undefined) return found;
  const supported = Object.keys(ARCHITECTURES).join(", ");
  throw new CheckpointError(path, `architecture "${name.slice(0, 80)}" is not supported (supported: ${supported})`);
}

/**
 * "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; null for a tensor that the model does not have. With
 * `expert`, the name of that part of a stacked tensor.
 */
export function transformersName(
  architecture: Architecture,
  name: string,
  expert: number | null = null,
): string | null {
  const inLayer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name);
  if (inLayer !== null) {
    const [, layer, module, kind] = inLayer;
    const layers = architecture.outside === undefined ? "model.layers" : "transformer.h";
    const stacked = expert === null ? undefined : `mlp.experts.${expert}.${STACKED[module!]}`;
    const path = stacked ?? architecture.modules?.[module!] ?? MODULES[module!];
    return path === undefined ? null : `${layers}.${layer}.${path}.${kind}`;
  }
  const [module, kind, ...rest] = name.split(".");
  const path = architecture.outside?.[module!] ?? OUTSIDE_LAYERS[module!];
  const isKnown = path !== undefined && (kind === "weight" || kind === "bias") && rest.length === 0;
  return isKnown ? `${path}.${kind}` : null;
}

/** Whether a tensor holds the linear layers of all experts of a decoder layer. */
export function isStacked(name: string): boolean {
  return Object.hasOwn(STACKED, name.split(".")[2] ?? "");
}

function llamaConfig(fields: GgufFields): JsonObject {
  return { attention_bias: fields.hasTensor("blk.0.attn_q.bias"), mlp_bias: fields.hasTensor("blk.0.ffn_up.bias") };
}

function gemma3Config(fields: GgufFields): JsonObject {
  const windows = fields.has("attention.sliding_window")
    ? {
        sliding_window: fields.count("attention.sliding_window"),
        sliding_window_pattern: fields.count("attention.sliding_window_pattern", 6),
      }
    : { layer_types: Array<string>(fields.count("block_count")).fill("full_attention") };
  return {
    ...windows,
    rope_theta: fields.number("rope.freq_base", 1_000_000),
    rope_local_base_freq: fields.number("rope.freq_base_swa", 10_000),
    final_logit_softcapping: fields.has("final_logit_softcapping") ? fields.number("final_logit_softcapping") : null,
    query_pre_attn_scalar: gemmaQueryScalar(fields, 62),
  };
}

function gemma2Config(fields: GgufFields): JsonObject {
  const cap = (key: string) => (fields.has(key) ? fields.number(key) : null);
  return {
    sliding_window: fields.count("attention.sliding_window", 4096),
    attn_logit_softcapping: cap("attn_logit_softcapping"),
    final_logit_softcapping: cap("final_logit_softcapping"),
    query_pre_attn_scalar: gemmaQueryScalar(fields, 46),
  };
}

/** Granite's factors; an attention factor of 0 or none means the usual one. */
function graniteConfig(fields: GgufFields): JsonObject {
  const attention = fields.number("attention.scale", 0);
  return {
    ...llamaConfig(fields),
    attention_multiplier: attention === 0 ? 1 / Math.sqrt(fields.headDim) : attention,
    embedding_multiplier: fields.number("embedding_scale", 1),
    residual_multiplier: fields.number("residual_scale", 1),
    logits_scaling: fields.number("logit_scale", 1),
  };
}

function olmo2Config(fields: GgufFields): JsonObject {
  // OLMo 3 says olmo2 too, and has windows.
  return fields.has("attention.sliding_window") ? { model_type: "olmo3" } : {};
}

function qwen3MoeConfig(fields: GgufFields): JsonObject {
  return {
    num_experts: fields.count("expert_count"),
    num_experts_per_tok: fields.count("expert_used_count"),
    moe_intermediate_size: fields.count(
      "expert_feed_forward_length",
      fields.count("feed_forward_length") / fields.count("expert_used_count"),
    ),
    norm_topk_prob: true,
  };
}

/** A window of 0 means none. */
function phi3Config(fields: GgufFields): JsonObject {
  const window = fields.number("attention.sliding_window", 0);
  const original = fields.count("rope.scaling.original_context_length", fields.count("context_length"));
  const [long, short] = ["long", "short"].map((kind) => fields.values(`rope_factors_${kind}.weight`));
  const factors = {
    rope_type: "longrope",
    long_factor: long,
    short_factor: short,
    attention_factor: fields.number("rope.scaling.attn_factor", 1),
  };
  return {
    sliding_window: window === 0 ? null : window,
    original_max_position_embeddings: original,
    rope_scaling: long === null || short === null ? null : factors,
  };
}

function gpt2Config(fields: GgufFields): JsonObject {
  return {
    n_embd: fields.count("embedding_length"),
    n_layer: fields.count("block_count"),
    n_head: fields.count("attention.head_count"),
    n_inner: fields.count("feed_forward_length"),
    n_positions: fields.count("context_length"),
    layer_norm_epsilon: fields.number("attention.layer_norm_epsilon"),
    // Its own rules of positions: no rotation.
    rope_theta: null,
  };
}

/** The file does not have it. Only the 27-billion models, known by their number of layers, differ from the head size. */
function gemmaQueryScalar(fields: GgufFields, layersOf27b: number): number {
  if (fields.count("block_count") !== layersOf27b) return fields.headDim;
  return fields.count("embedding_length") / fields.count("attention.head_count");
}
