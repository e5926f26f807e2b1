// Writes a checkpoint as a model folder for transformers.js: config.json and onnx/model*.onnx in the layout of published
// models. Token ids and a mask go in, keys and values of all layers go in and out, and GroupQueryAttention has the rotary
// embeddings inside. Supports only families without sliding windows.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Graph, MICROSOFT, type Value } from "../../src/graph/graph.ts";
import { emitOnnx } from "../../src/graph/onnx.ts";
import { add, gather, ints, mul, rmsNorm, silu, slice, sub } from "../../src/graph/ops.ts";
import type { Checkpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { LinearTensors, TensorSpec } from "../../src/model/checkpoint/expected-tensors.ts";
import { readJsonObject } from "../../src/model/checkpoint/json-file.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { LinearName } from "../../src/model/families/tensor-names.ts";
import { RotaryTable } from "../../src/model/rotary-table.ts";
import { cast, type ExportPrecision, exportedLinear } from "./onnx-export-linear.ts";

/** File suffixes by which transformers.js selects a precision. */
const FILE: Readonly<Record<ExportPrecision, string>> = { f32: "model", int8: "model_quantized", int4: "model_q4" };
const MAX_CONFIG_BYTES = 16 * 2 ** 20;

/** `folder` holds one precision, because weight files are named after tensors. */
export function writeOnnxModel(checkpoint: Checkpoint, folder: string, precision: ExportPrecision): void {
  const { config } = checkpoint;
  if (config.family === "gemma3" || config.layers.some((layer) => layer.window !== null)) {
    throw new Error(`the benchmark writes no transformers.js model for ${config.family} models with windows`);
  }
  const onnx = join(folder, "onnx");
  mkdirSync(onnx, { recursive: true });
  const model = emitOnnx(new ModelExport(checkpoint, precision).build());
  for (const { path, data } of model.external) writeFileSync(join(onnx, path), data);
  writeFileSync(join(onnx, `${FILE[precision]}.onnx`), model.bytes);
  // Without end tokens, every generation runs to the requested length.
  const { eos_token_id: _, ...settings } = readJsonObject(join(checkpoint.path, "config.json"), MAX_CONFIG_BYTES);
  writeFileSync(join(folder, "config.json"), JSON.stringify(settings));
}

class ModelExport {
  readonly #g = new Graph();
  readonly #checkpoint: Checkpoint;
  readonly #config: ModelConfig;
  readonly #precision: ExportPrecision;

  constructor(checkpoint: Checkpoint, precision: ExportPrecision) {
    this.#checkpoint = checkpoint;
    this.#config = checkpoint.config;
    this.#precision = precision;
  }

  build(): Graph {
    const [g, config] = [this.#g, this.#config];
    const { embedding, layers, finalNorm, head } = this.#checkpoint.tensors;
    const ids = g.input("input_ids", ["batch_size", "sequence_length"], "int64");
    const attention = this.#attention();
    let x = gather(g, this.#weights("embedding", embedding), ids);
    for (const [i, layer] of layers.entries()) {
      const { q, k, v, o, gate, up, down } = layer.linears as Record<LinearName, LinearTensors>;
      const normed = this.#norm(x, layer.norms.attention!.weight);
      const query = this.#headNorm(this.#linear(normed, q), config.numHeads, layer.qNorm);
      const key = this.#headNorm(this.#linear(normed, k), config.numKvHeads, layer.kNorm);
      x = add(g, x, this.#linear(attention(i, query, key, this.#linear(normed, v)), o));
      const inner = this.#norm(x, layer.norms.mlp!.weight);
      x = add(g, x, this.#linear(mul(g, silu(g, this.#linear(inner, gate)), this.#linear(inner, up)), down));
    }
    const last = this.#norm(this.#lastPositions(x), finalNorm.weight);
    g.output("logits", this.#linear(last, { weight: head ?? embedding, transposed: false, bias: null }));
    return g;
  }

  #weights(name: string, spec: TensorSpec): Value {
    return this.#g.initializer(name, spec.shape, this.#checkpoint.tensor(spec.name).read());
  }

  #linear(x: Value, { weight, bias }: LinearTensors): Value {
    const [out, inputs] = weight.shape as [number, number];
    const values = this.#checkpoint.tensor(weight.name).read();
    const product = exportedLinear(this.#g, x, { name: weight.name, values, out, inputs }, this.#precision);
    return bias === null ? product : add(this.#g, product, this.#weights(bias.name, bias));
  }

  #norm(x: Value, spec: TensorSpec): Value {
    return rmsNorm(this.#g, x, this.#weights(spec.name, spec), this.#config.normEps);
  }

  /** Normalizes every head of x [batch, length, heads * headDim]. Returns x if there is no `spec`. */
  #headNorm(x: Value, heads: number, spec: TensorSpec | null): Value {
    if (spec === null) return x;
    const g = this.#g;
    const apart = [0, 0, heads, this.#config.headDim];
    const shape = [...x.shape.slice(0, 2), ...apart.slice(2)];
    const split = g.add("Reshape", [x, ints(g, apart)], [{ shape }])[0]!;
    return g.add("Reshape", [this.#norm(split, spec), ints(g, [0, 0, -1])], [{ shape: x.shape }])[0]!;
  }

  /** Attention over [past, new]. The whole cache goes in and out. */
  #attention(): (layer: number, q: Value, k: Value, v: Value) => Value {
    const [g, config] = [this.#g, this.#config];
    const { numHeads, numKvHeads, headDim } = config;
    const mask = g.input("attention_mask", ["batch_size", "total_sequence_length"], "int64");
    const summed = { shape: ["batch_size"], dtype: "int64" } as const;
    const lengths = g.add("ReduceSum", [mask, ints(g, [1])], [summed], { keepdims: 0 })[0]!;
    const lastIndex = cast(g, sub(g, lengths, ints(g, [1])), "int32");
    const size = g.add("Shape", [mask], [{ shape: [2], dtype: "int64" }])[0]!;
    const total = cast(g, gather(g, size, g.constant(BigInt64Array.of(1n), [])), "int32");
    const cos = new Float32Array((config.maxPositions * headDim) / 2);
    const sin = new Float32Array((config.maxPositions * headDim) / 2);
    const table = new RotaryTable(config.layers[0]!.rope!, headDim, config.maxPositions);
    table.copyTo(0, config.maxPositions, cos, sin, 0);
    const angles = [
      g.initializer("cos_cache", [config.maxPositions, headDim / 2], cos),
      g.initializer("sin_cache", [config.maxPositions, headDim / 2], sin),
    ];
    const attributes = {
      num_heads: numHeads,
      kv_num_heads: numKvHeads,
      scale: { float: config.attentionScale },
      do_rotary: 1,
    };
    const cacheShape = (length: string) => ["batch_size", numKvHeads, length, headDim];
    return (layer, q, k, v) => {
      const past = ["key", "value"].map((part) =>
        g.input(`past_key_values.${layer}.${part}`, cacheShape("past_sequence_length")),
      );
      const present = { shape: cacheShape("total_sequence_length") };
      const [result, ...remembered] = g.add(
        "GroupQueryAttention",
        [q, k, v, ...past, lastIndex, total, ...angles],
        [{ shape: q.shape }, present, present],
        attributes,
        MICROSOFT,
        [g.freshName("attention"), `present.${layer}.key`, `present.${layer}.value`],
      );
      g.outputs.push(...remembered);
      return result!;
    };
  }

  /** The last `num_logits_to_keep` positions of x; 0 = all. */
  #lastPositions(x: Value): Value {
    const g = this.#g;
    const count = g.input("num_logits_to_keep", [], "int64");
    const negative = g.add("Neg", [count], [{ shape: [], dtype: "int64" }])[0]!;
    const start = g.add("Reshape", [negative, ints(g, [1])], [{ shape: [1], dtype: "int64" }])[0]!;
    return slice(g, x, 1, start, Number.MAX_SAFE_INTEGER, "kept");
  }
}
