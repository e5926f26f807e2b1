// Makes checkpoints of random weights in several sizes. The same seed gives the same files. Weights have the scale of a trained
// model's, so that attention is not uniform and the most likely token is clear. Otherwise engines that computed different
// models might still agree.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { linearShape, modulePath } from "../../src/model/checkpoint/expected-tensors.ts";
import { parseModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { type TensorToWrite, writeSafetensors } from "../../src/model/checkpoint/safetensors-writer.ts";
import { mapsOf } from "../../src/model/families/tensor-names.ts";
import { Random } from "./random.ts";

export interface Shape {
  layers: number;
  hidden: number;
  heads: number;
  kvHeads: number;
  intermediate: number;
  vocab: number;
}

const QWEN3 = { kvHeads: 8, vocab: 151_936, headDim: 128 };

/** Sizes by number of weights. Those with a `headDim` are Qwen3's shapes: tied embeddings, norms of heads, bfloat16 files. */
export const shapes = {
  "44m": { layers: 12, hidden: 512, heads: 8, kvHeads: 4, intermediate: 1408, vocab: 8192 },
  "350m": { layers: 24, hidden: 1024, heads: 16, kvHeads: 8, intermediate: 2816, vocab: 32_768 },
  "qwen3-0.6b": { layers: 28, hidden: 1024, heads: 16, intermediate: 3072, ...QWEN3 },
  "qwen3-1.7b": { layers: 28, hidden: 2048, heads: 16, intermediate: 6144, ...QWEN3 },
  "qwen3-4b": { layers: 36, hidden: 2560, heads: 32, intermediate: 9728, ...QWEN3 },
} as const satisfies Record<string, Shape & { headDim?: number }>;
export type Size = keyof typeof shapes;
export const sizes = Object.keys(shapes) as readonly Size[];

/** So many random numbers make all weights, because drawing billions takes minutes. A prime, so that no two rows are equal. */
const REUSED = 1_048_573;

/** Writes config.json and weights, a file for each layer so that large models need little memory. */
export function writeRandomCheckpoint(folder: string, shape: Shape & { headDim?: number }, positions = 4096): void {
  const isQwen = shape.headDim !== undefined;
  const config = {
    architectures: [isQwen ? "Qwen3ForCausalLM" : "LlamaForCausalLM"],
    model_type: isQwen ? "qwen3" : "llama",
    vocab_size: shape.vocab,
    hidden_size: shape.hidden,
    intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.headDim ?? shape.hidden / shape.heads,
    rms_norm_eps: isQwen ? 1e-6 : 1e-5,
    rope_theta: isQwen ? 1_000_000 : 10_000,
    max_position_embeddings: positions,
    hidden_act: "silu",
    tie_word_embeddings: isQwen,
    bos_token_id: 1,
    eos_token_id: 2,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.json"), JSON.stringify(config, null, 2));
  const random = new Random(43);
  const dtype = isQwen ? "BF16" : "F32";
  let tensors: TensorToWrite[] = [];
  const normals = Float32Array.from({ length: REUSED }, () => random.normal());
  const add = (name: string, size: readonly number[], mean: number, deviation: number): void => {
    const values = new Float32Array(size.reduce((product, n) => product * n, 1));
    let at = random.below(REUSED);
    for (let i = 0; i < values.length; i++) {
      values[i] = mean + deviation * normals[at]!;
      at = at + 1 === REUSED ? 0 : at + 1;
    }
    tensors.push({ name, shape: size, values, dtype });
  };
  const fileOf: Record<string, string> = {};
  const write = (file: string): void => {
    writeSafetensors(join(folder, file), tensors);
    for (const { name } of tensors) fileOf[name] = file;
    tensors = [];
  };
  const { hidden, vocab, layers } = shape;
  const parsed = parseModelConfig("config.json", config);
  add("model.embed_tokens.weight", [vocab, hidden], 0, isQwen ? 3 / Math.sqrt(hidden) : 1);
  if (!isQwen) add("lm_head.weight", [vocab, hidden], 0, 3 / Math.sqrt(hidden));
  add("model.norm.weight", [hidden], 1, 0.1);
  write("model-ends.safetensors");
  for (let layer = 0; layer < layers; layer++) {
    const prefix = `model.layers.${layer}.`;
    add(`${prefix}input_layernorm.weight`, [hidden], 1, 0.1);
    add(`${prefix}post_attention_layernorm.weight`, [hidden], 1, 0.1);
    if (isQwen)
      for (const name of ["q_norm", "k_norm"]) add(`${prefix}self_attn.${name}.weight`, [config.head_dim], 1, 0.1);
    for (const name of mapsOf(parsed.layers[layer]!)) {
      const [out, inputs] = linearShape(parsed, name);
      add(`${prefix}${modulePath(parsed, name)}.weight`, [out, inputs], 0, 1 / Math.sqrt(inputs));
    }
    write(`model-layer-${layer}.safetensors`);
  }
  const index = { metadata: {}, weight_map: fileOf };
  writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
}
