// A checkpoint in float32 whose weights are those that a rounded type multiplies with.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Checkpoint, openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { TensorSpec } from "../../src/model/checkpoint/expected-tensors.ts";
import { type TensorToWrite, writeSafetensors } from "../../src/model/checkpoint/safetensors-writer.ts";
import { effectiveWeights, type WeightType } from "../../src/model/linear/linear.ts";
import { matrixOf } from "../../src/model/linear/matrix-rows.ts";

/** The model of `folder` as float32, with the rounded weights of `type` in every linear map and the head. */
export function writeWidened(folder: string, type: WeightType, into: string): void {
  const checkpoint = openCheckpoint(folder);
  const { tensors } = checkpoint;
  const read = (spec: TensorSpec) => checkpoint.tensor(spec.name).read();
  const written: TensorToWrite[] = [];
  const plain = (spec: TensorSpec | null) => {
    if (spec) written.push({ name: spec.name, shape: spec.shape, values: read(spec), dtype: "F32" });
  };
  const rounded = (spec: TensorSpec, weightType: WeightType, transposed = false, name = spec.name) => {
    const [out, inputs] = (transposed ? spec.shape.toReversed() : spec.shape) as [number, number];
    const weight = matrixOf(transposed ? turned(read(spec), inputs, out) : read(spec), out, inputs);
    const effective = effectiveWeights(weight, weightType);
    const values = transposed ? turned(effective, out, inputs) : effective;
    written.push({ name, shape: spec.shape, values, dtype: "F32" });
  };
  plain(tensors.embedding);
  plain(tensors.positions);
  for (const spec of [tensors.finalNorm.weight, tensors.finalNorm.bias]) plain(spec);
  // In every rounded type the head has one byte per weight.
  rounded(tensors.head ?? tensors.embedding, "int8", false, "lm_head.weight");
  for (const layer of tensors.layers) {
    for (const { weight, transposed, bias } of Object.values(layer.linears)) {
      rounded(weight, type, transposed);
      plain(bias);
    }
    plain(layer.experts?.router ?? null);
    for (const expert of layer.experts?.experts ?? []) {
      for (const { weight } of Object.values(expert)) rounded(weight, type);
    }
    for (const norm of normsOf(layer)) plain(norm);
  }
  checkpoint.close();
  writeSafetensors(join(into, "model.safetensors"), written);
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  writeFileSync(join(into, "config.json"), JSON.stringify({ ...config, tie_word_embeddings: false }));
  for (const file of ["adapter_config.json", "adapter_model.safetensors"])
    copyFileSync(join(folder, file), join(into, file));
}

/** [rows, columns] -> [columns, rows]. */
function turned(values: Float32Array, rows: number, columns: number): Float32Array {
  return Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

function normsOf(layer: Checkpoint["tensors"]["layers"][number]) {
  const norms = Object.values(layer.norms).flatMap((norm) => [norm?.weight ?? null, norm?.bias ?? null]);
  return [...norms, layer.qNorm, layer.kNorm];
}
