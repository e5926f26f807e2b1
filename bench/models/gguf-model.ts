// Writes a checkpoint as a GGUF file for llama.cpp: the same numbers under llama.cpp's names. Supports the families whose
// layout llama.cpp shares (Llama, Mistral, Qwen 2, Qwen 3). The file's tokenizer is a placeholder with one made-up string
// per id, because the benchmark uses only ids.

import type { Checkpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { TensorSpec } from "../../src/model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { inverseFrequencies } from "../../src/model/checkpoint/rope.ts";
import type { LinearName } from "../../src/model/checkpoint/sites.ts";
import type { FamilyName } from "../../src/model/families/family.ts";
import { blockOf, type GgmlType } from "./ggml-blocks.ts";
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf.ts";

const ARCHITECTURE: Readonly<Partial<Record<FamilyName, string>>> = {
  llama: "llama",
  mistral: "llama",
  qwen2: "qwen2",
  qwen3: "qwen3",
};

const FILE_TYPE: Readonly<Record<GgmlType, number>> = {
  ...{ f32: 0, f16: 1, bf16: 32, q4_0: 2, q8_0: 7, q4_K: 14, q6_K: 18 },
};

const LINEAR: Readonly<Partial<Record<LinearName, string>>> = {
  q: "attn_q",
  k: "attn_k",
  v: "attn_v",
  o: "attn_output",
  gate: "ffn_gate",
  up: "ffn_up",
  down: "ffn_down",
};

/**
 * Writes matrices as `type`, and norms and biases as f32. In a q4_0 file the output head is q8_0, because ours is int8.
 * `tokenizer` replaces entries of the placeholder.
 */
export function writeGgufModel(
  checkpoint: Checkpoint,
  path: string,
  type: GgmlType,
  tokenizer: Readonly<Record<string, GgufValue>> = {},
): void {
  const { config } = checkpoint;
  const architecture = ARCHITECTURE[config.family];
  const windowed = config.layers.some((layer) => layer.window !== null);
  if (architecture === undefined || windowed) {
    throw new Error(`the benchmark writes no GGUF for ${config.family} models${windowed ? " with windows" : ""}`);
  }
  const entries = { ...metadata(config, architecture, type), ...tokenizer };
  writeGguf(path, entries, tensors(checkpoint, architecture, type));
}

function metadata(config: ModelConfig, architecture: string, type: GgmlType): Record<string, GgufValue> {
  const uint32 = (value: number): GgufValue => ({ type: "uint32", value });
  const float32 = (value: number): GgufValue => ({ type: "float32", value });
  const string = (value: string): GgufValue => ({ type: "string", value });
  const ids = Array.from({ length: config.vocabSize }, (_, id) => id);
  const shape: Record<string, GgufValue> = {
    context_length: uint32(config.maxPositions),
    embedding_length: uint32(config.hiddenSize),
    block_count: uint32(config.numLayers),
    feed_forward_length: uint32(config.intermediateSize),
    vocab_size: uint32(config.vocabSize),
    "attention.head_count": uint32(config.numHeads),
    "attention.head_count_kv": uint32(config.numKvHeads),
    "attention.key_length": uint32(config.headDim),
    "attention.value_length": uint32(config.headDim),
    "attention.layer_norm_rms_epsilon": float32(config.normEps),
    "rope.freq_base": float32(config.layers[0]!.rope!.theta),
    "rope.dimension_count": uint32(config.headDim),
  };
  const normal = 1;
  return {
    "general.architecture": string(architecture),
    "general.name": string("benchmark"),
    "general.file_type": uint32(FILE_TYPE[type]),
    ...Object.fromEntries(Object.entries(shape).map(([key, value]) => [`${architecture}.${key}`, value])),
    "tokenizer.ggml.model": string("gpt2"),
    "tokenizer.ggml.pre": string("gpt-2"),
    "tokenizer.ggml.tokens": { type: "strings", value: ids.map((id) => `t${id}`) },
    "tokenizer.ggml.token_type": { type: "int32s", value: ids.map(() => normal) },
    "tokenizer.ggml.merges": { type: "strings", value: ["t 1"] },
    "tokenizer.ggml.bos_token_id": uint32(config.bosTokenId ?? 0),
    "tokenizer.ggml.eos_token_id": uint32(config.eosTokenIds[0] ?? 0),
  };
}

function tensors(checkpoint: Checkpoint, architecture: string, type: GgmlType): GgufTensor[] {
  const { config, tensors: source } = checkpoint;
  const result: GgufTensor[] = [];
  const add = (name: string, spec: TensorSpec, wanted: GgmlType, change = (x: Float32Array) => x): void => {
    result.push({
      name,
      shape: spec.shape,
      type: spec.shape.at(-1)! % blockOf(wanted) === 0 ? wanted : "f16",
      read: () => change(checkpoint.tensor(spec.name).read()),
    });
  };
  const headType = type === "q4_0" ? "q8_0" : type;
  add("token_embd.weight", source.embedding, source.head === null ? headType : type);
  if (source.head !== null) add("output.weight", source.head, headType);
  add("output_norm.weight", source.finalNorm.weight, "f32");
  const factors = ropeFactors(config, architecture);
  if (factors !== null) {
    result.push({ name: "rope_freqs.weight", shape: [factors.length], type: "f32", read: () => factors });
  }
  for (const [i, layer] of source.layers.entries()) {
    const block = `blk.${i}.`;
    add(`${block}attn_norm.weight`, layer.norms.attention!.weight, "f32");
    add(`${block}ffn_norm.weight`, layer.norms.mlp!.weight, "f32");
    if (layer.qNorm !== null) add(`${block}attn_q_norm.weight`, layer.qNorm, "f32");
    if (layer.kNorm !== null) add(`${block}attn_k_norm.weight`, layer.kNorm, "f32");
    for (const [name, { weight, bias }] of Object.entries(layer.linears)) {
      const turned = architecture === "llama" && (name === "q" || name === "k");
      const change = turned ? (x: Float32Array) => interleaveHalves(x, config.headDim, weight.shape[0]!) : undefined;
      const target = block + LINEAR[name as LinearName];
      add(`${target}.weight`, weight, type, change);
      if (bias !== null) add(`${target}.bias`, bias, "f32", change);
    }
  }
  return result;
}

/**
 * Hugging Face rotates dimension j of a head with dimension j + headDim / 2. llama.cpp's Llama rotates neighbours. So the
 * rows of every head are reordered: 0, half, 1, half + 1, ... The products of queries and keys do not change.
 */
export function interleaveHalves(weights: Float32Array, headDim: number, rows: number): Float32Array {
  const width = weights.length / rows;
  const half = headDim / 2;
  const result = new Float32Array(weights.length);
  for (let row = 0; row < rows; row++) {
    const inHead = row % headDim;
    const source = row - inHead + (inHead % 2) * half + Math.floor(inHead / 2);
    result.set(weights.subarray(source * width, (source + 1) * width), row * width);
  }
  return result;
}

/** Divisors that llama.cpp applies to the plain rotary frequencies; null = none. */
function ropeFactors(config: ModelConfig, architecture: string): Float32Array | null {
  const { rope } = config.layers[0]!;
  if (rope === null || rope.scaling === null) return null;
  if (architecture !== "llama" || rope.attentionFactor !== 1) {
    throw new Error(
      `the benchmark writes no GGUF for ${config.family} models with ${rope.scaling.type} rotary scaling`,
    );
  }
  const scaled = inverseFrequencies(rope, config.headDim);
  const plain = inverseFrequencies({ ...rope, scaling: null }, config.headDim);
  return Float32Array.from(plain, (frequency, i) => frequency / scaled[i]!);
}
