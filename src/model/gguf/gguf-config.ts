// The config.json and generation_config.json that a GGUF file stands for. From there on a model is read as from a
// folder.

import type { JsonObject } from "../../json/json.ts";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { architectureOf } from "./architectures.ts";
import type { GgufMetadata } from "./gguf-metadata.ts";
import { GgufFields, type GgufModel, openGguf, readGgufMetadata } from "./open-gguf.ts";

// The tokens that end a reply. A file names one or two of them by id. Many chat models have more, which a folder lists in
// generation_config.json; a file has no such list, so, as in llama.cpp, they are known by their texts.

const ENDING_TEXTS: ReadonlySet<string> = new Set([
  ...["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "<|end|>"],
  ...["<end_of_turn>", "<eos>", "</s>", "<EOT>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>"],
]);
/** Tokens of these kinds are no text of the model's: its control tokens and those that its makers added. */
const CONTROL = 3;
const USER_DEFINED = 4;

function endTokens(metadata: GgufMetadata): number[] {
  const named = ["eos", "eot", "eom"]
    .map((role) => `tokenizer.ggml.${role}_token_id`)
    .filter((key) => metadata.has(key))
    .map((key) => metadata.number(key));
  return [...new Set([...named, ...byText(metadata)])];
}

function byText(metadata: GgufMetadata): number[] {
  if (!metadata.has("tokenizer.ggml.tokens") || !metadata.has("tokenizer.ggml.token_type")) return [];
  const kinds = metadata.numbers("tokenizer.ggml.token_type");
  const ids: number[] = [];
  for (const [id, text] of metadata.texts("tokenizer.ggml.tokens").entries()) {
    if ((kinds[id] === CONTROL || kinds[id] === USER_DEFINED) && ENDING_TEXTS.has(text)) ids.push(id);
  }
  return ids;
}

export function readGgufConfig(path: string): JsonObject {
  const model = openGguf(path);
  try {
    return configOf(model);
  } finally {
    model.close();
  }
}

/** Newer converters keep the sampling values that a model's makers recommend. */
export function readGgufGeneration(path: string): JsonObject {
  const metadata = readGgufMetadata(path);
  const keys = {
    temperature: "temp",
    top_p: "top_p",
    top_k: "top_k",
    min_p: "min_p",
    repetition_penalty: "penalty_repeat",
  };
  const known = Object.entries(keys)
    .map(([field, key]) => [field, `general.sampling.${key}`] as const)
    .filter(([, key]) => metadata.has(key));
  return Object.fromEntries(known.map(([field, key]) => [field, metadata.number(key)]));
}

function configOf(model: GgufModel): JsonObject {
  const { path, metadata } = model;
  const fields = new GgufFields(model);
  const architecture = architectureOf(path, fields.architecture);
  if (!architecture.sparse && fields.number("expert_count", 0) > 0) {
    throw new CheckpointError(path, `models of architecture ${fields.architecture} with experts are not supported`);
  }
  const numHeads = fields.count("attention.head_count");
  const headDim = fields.headDim;
  const rotated = fields.count("rope.dimension_count", headDim);
  return {
    model_type: architecture.modelType,
    vocab_size: fields.shape("token_embd.weight")[0]!,
    hidden_size: fields.count("embedding_length"),
    intermediate_size: fields.count("feed_forward_length"),
    num_hidden_layers: fields.count("block_count"),
    num_attention_heads: numHeads,
    num_key_value_heads: fields.count("attention.head_count_kv", numHeads),
    head_dim: headDim,
    rms_norm_eps: fields.number(architecture.epsilon ?? "attention.layer_norm_rms_epsilon"),
    max_position_embeddings: fields.count("context_length"),
    tie_word_embeddings: !fields.hasTensor("output.weight"),
    rope_theta: fields.number("rope.freq_base", 10_000),
    rope_scaling: ropeScaling(fields),
    ...(rotated === headDim ? {} : { partial_rotary_factor: rotated / headDim }),
    bos_token_id: tokenId(metadata, "bos"),
    eos_token_id: endTokens(metadata),
    ...architecture.config?.(fields),
  };
}

function tokenId(metadata: GgufMetadata, role: string): number | null {
  const key = `tokenizer.ggml.${role}_token_id`;
  return metadata.has(key) ? metadata.number(key) : null;
}

/** As in config.json; null = plain frequencies. */
function ropeScaling(fields: GgufFields): JsonObject | null {
  const factors = fields.values("rope_freqs.weight");
  if (factors !== null) return ownFactors(factors);
  const type = fields.text("rope.scaling.type", "none");
  // Older files have the factor alone, which means linear.
  const factor = fields.number("rope.scaling.factor", fields.number("rope.scale_linear", 1));
  if (type === "none" || (type === "linear" && factor === 1)) {
    return factor === 1 ? null : { rope_type: "linear", factor };
  }
  const original = "rope.scaling.original_context_length";
  return {
    rope_type: type,
    factor,
    ...(fields.has(original) ? { original_max_position_embeddings: fields.count(original) } : {}),
    ...(type === "yarn" && fields.has("rope.scaling.yarn_beta_fast")
      ? { beta_fast: fields.number("rope.scaling.yarn_beta_fast") }
      : {}),
    ...(type === "yarn" && fields.has("rope.scaling.yarn_beta_slow")
      ? { beta_slow: fields.number("rope.scaling.yarn_beta_slow") }
      : {}),
  };
}

/** Every frequency divided by a factor of its own: how a file keeps the scaling of Llama 3. */
function ownFactors(factors: number[]): JsonObject {
  return { rope_type: "longrope", short_factor: factors, long_factor: factors, attention_factor: 1 };
}
