// The metadata of a GGUF file that describe a model to llama.cpp, and a placeholder for its tokenizer: one made-up string per
// id, because the benchmark uses only ids.

import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { FamilyName } from "../../src/model/families/family.ts";
import type { GgmlType } from "./ggml-blocks.ts";
import type { GgufValue } from "./gguf.ts";

/** llama.cpp's name of each family's architecture. */
export const ARCHITECTURE: Readonly<Record<FamilyName, string>> = {
  ...{ llama: "llama", mistral: "llama", qwen2: "qwen2", qwen3: "qwen3", qwen3_moe: "qwen3moe" },
  ...{ gemma2: "gemma2", gemma3: "gemma3", olmo2: "olmo2", granite: "granite", smollm3: "smollm3" },
  ...{ phi3: "phi3", gpt2: "gpt2" },
};

const FILE_TYPE: Readonly<Record<GgmlType, number>> = {
  ...{ f32: 0, f16: 1, bf16: 32, q4_0: 2, q8_0: 7, q4_K: 14, q6_K: 18 },
};

type Entries = Record<string, GgufValue>;
const uint32 = (value: number): GgufValue => ({ type: "uint32", value });
const float32 = (value: number): GgufValue => ({ type: "float32", value });
const string = (value: string): GgufValue => ({ type: "string", value });

/** llama.cpp's kinds of tokens. */
const [NORMAL, USER_DEFINED] = [1, 4];

export function ggufMetadata(config: ModelConfig, type: GgmlType): Entries {
  const architecture = ARCHITECTURE[config.family];
  const shape: Entries = {
    context_length: uint32(config.maxPositions),
    embedding_length: uint32(config.hiddenSize),
    block_count: uint32(config.numLayers),
    feed_forward_length: uint32(config.intermediateSize),
    vocab_size: uint32(config.vocabSize),
    "attention.head_count": uint32(config.numHeads),
    "attention.head_count_kv": uint32(config.numKvHeads),
    "attention.key_length": uint32(config.headDim),
    "attention.value_length": uint32(config.headDim),
    ...ofPositions(config),
    ...ofFamily(config),
  };
  const ids = Array.from({ length: config.vocabSize }, (_, id) => id);
  return {
    "general.architecture": string(architecture),
    "general.name": string("benchmark"),
    "general.file_type": uint32(FILE_TYPE[type]),
    ...Object.fromEntries(Object.entries(shape).map(([key, value]) => [`${architecture}.${key}`, value])),
    "tokenizer.ggml.model": string("gpt2"),
    "tokenizer.ggml.pre": string("gpt-2"),
    "tokenizer.ggml.tokens": { type: "strings", value: ids.map((id) => `t${id}`) },
    "tokenizer.ggml.token_type": { type: "int32s", value: ids.map(() => NORMAL) },
    "tokenizer.ggml.merges": { type: "strings", value: ["t 1"] },
    "tokenizer.ggml.bos_token_id": uint32(config.bosTokenId ?? 0),
    "tokenizer.ggml.eos_token_id": uint32(config.eosTokenIds[0] ?? 0),
  };
}

/** For an engine that takes texts only: "t17t4" is tokens 17 and 4, because every token counts as one that a user defined. */
export function spelledTokens({ vocabSize }: ModelConfig): Entries {
  return { "tokenizer.ggml.token_type": { type: "int32s", value: new Array<number>(vocabSize).fill(USER_DEFINED) } };
}

/** GPT-2 does not rotate. Gemma 3's layers with a window have a base of their own, which files leave out. */
function ofPositions({ layers, headDim }: ModelConfig): Entries {
  const ropes = layers.flatMap(({ rope, window }) => (rope === null ? [] : [{ rope, window }]));
  const { rope } = ropes.find(({ window }) => window === null) ?? ropes[0] ?? { rope: null };
  if (rope === null) return {};
  return { "rope.freq_base": float32(rope.theta), "rope.dimension_count": uint32(rope.rotated ?? headDim) };
}

function ofFamily(config: ModelConfig): Entries {
  const window = config.layers.find((layer) => layer.window !== null)?.window ?? null;
  const epsilon = { "attention.layer_norm_rms_epsilon": float32(config.normEps) };
  const windows: Entries = window === null ? {} : { "attention.sliding_window": uint32(window) };
  switch (config.family) {
    case "gemma2":
      return {
        ...{ ...epsilon, ...windows },
        attn_logit_softcapping: float32(config.attentionSoftcap!),
        final_logit_softcapping: float32(config.logitSoftcap!),
      };
    case "gemma3":
      return { ...epsilon, ...windows };
    case "granite":
      return {
        ...epsilon,
        "attention.scale": float32(config.attentionScale),
        embedding_scale: float32(config.embeddingScale),
        residual_scale: float32(config.residualScale),
        logit_scale: float32(1 / config.logitScale),
      };
    case "phi3": {
      const rope = config.layers[0]!.rope!;
      const original = rope.scaling?.type === "longrope" ? rope.scaling.originalMaxPositions : config.maxPositions;
      return {
        ...epsilon,
        "attention.sliding_window": uint32(window ?? 0),
        "rope.scaling.original_context_length": uint32(original),
        "rope.scaling.attn_factor": float32(rope.attentionFactor),
      };
    }
    case "gpt2":
      return { "attention.layer_norm_epsilon": float32(config.normEps) };
    case "qwen3_moe": {
      const experts = config.layers[0]!.experts!;
      return {
        ...epsilon,
        expert_count: uint32(experts.count),
        expert_used_count: uint32(experts.perToken),
        expert_feed_forward_length: uint32(experts.intermediateSize),
      };
    }
    default:
      return epsilon;
  }
}
