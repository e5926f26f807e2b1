// Makes checkpoints of random weights in two sizes. The same seed gives the same files. Weights have the scale of a trained
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

/** Shapes by number of weights. */
export const shapes = {
  "44m": { layers: 12, hidden: 512, heads: 8, kvHeads: 4, intermediate: 1408, vocab: 8192 },
  "350m": { layers: 24, hidden: 1024, heads: 16, kvHeads: 8, intermediate: 2816, vocab: 32_768 },
} as const satisfies Record<string, Shape>;
export type Size = keyof typeof shapes;
export const sizes = Object.keys(shapes) as readonly Size[];

/** Writes config.json and model.safetensors (float32, Llama layout) into `folder`. */
export function writeRandomCheckpoint(folder: string, shape: Shape, positions = 4096): void {
  const config = {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: shape.vocab,
    hidden_size: shape.hidden,
    intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.hidden / shape.heads,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    max_position_embeddings: positions,
    hidden_act: "silu",
    tie_word_embeddings: false,
    bos_token_id: 1,
    eos_token_id: 2,
  };
  const random = new Random(43);
  const tensors: TensorToWrite[] = [];
  const add = (name: string, size: readonly number[], mean: number, deviation: number): void => {
    const values = new Float32Array(size.reduce((product, n) => product * n, 1));
    for (let i = 0; i < values.length; i++) values[i] = mean + deviation * random.normal();
    tensors.push({ name, shape: size, values, dtype: "F32" });
  };
  const { hidden, vocab, layers } = shape;
  const parsed = parseModelConfig("config.json", config);
  add("model.embed_tokens.weight", [vocab, hidden], 0, 1);
  add("lm_head.weight", [vocab, hidden], 0, 3 / Math.sqrt(hidden));
  add("model.norm.weight", [hidden], 1, 0.1);
  for (let layer = 0; layer < layers; layer++) {
    const prefix = `model.layers.${layer}.`;
    add(`${prefix}input_layernorm.weight`, [hidden], 1, 0.1);
    add(`${prefix}post_attention_layernorm.weight`, [hidden], 1, 0.1);
    for (const name of mapsOf(parsed.layers[layer]!)) {
      const [out, inputs] = linearShape(parsed, name);
      add(`${prefix}${modulePath(parsed, name)}.weight`, [out, inputs], 0, 1 / Math.sqrt(inputs));
    }
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.json"), JSON.stringify(config, null, 2));
  writeSafetensors(join(folder, "model.safetensors"), tensors);
}
