// The architectures of GGUF files that can be served: the family of each, how its tensors are called, and the fields of
// config.json that only it has. What all have in common is in gguf-config.ts.

import type { JsonObject } from "../../json/json-object.ts";
import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import type { GgufFields } from "./gguf-fields.ts";

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

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  // Mistral's files say "llama" too. llama.cpp ignores its window, and later versions have none.
  llama: { modelType: "llama", interleaved: true, config: llamaConfig },
  qwen2: { modelType: "qwen2", interleaved: false },
  qwen3: { modelType: "qwen3", interleaved: false },
  gemma3: { modelType: "gemma3_text", interleaved: false, modules: NORMS_AROUND, config: gemma3Config },
};

/** Throws an error that lists the supported ones if the file's is none of them. */
export function architectureOf(path: string, name: string): Architecture {
  const found = Object.hasOwn(ARCHITECTURES, name) ? ARCHITECTURES[name] : undefined;
  if (found !== undefined) return found;
  const supported = Object.keys(ARCHITECTURES).join(", ");
  throw new CheckpointError(path, `architecture "${name.slice(0, 80)}" is not supported (supported: ${supported})`);
}

/** "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; null for a tensor that the model does not have. */
export function transformersName(architecture: Architecture, name: string): string | null {
  const inLayer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name);
  if (inLayer !== null) {
    const [, layer, module, kind] = inLayer;
    const path = architecture.modules?.[module!] ?? MODULES[module!];
    return path === undefined ? null : `model.layers.${layer}.${path}.${kind}`;
  }
  const [module, kind, ...rest] = name.split(".");
  const path = OUTSIDE_LAYERS[module!];
  return path === undefined || kind !== "weight" || rest.length > 0 ? null : `${path}.weight`;
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

/** The file does not have it. Only the 27-billion models, known by their number of layers, differ from the head size. */
function gemmaQueryScalar(fields: GgufFields, layersOf27b: number): number {
  if (fields.count("block_count") !== layersOf27b) return fields.headDim;
  return fields.count("embedding_length") / fields.count("attention.head_count");
}
