// A LoRA adapter in memory: for each adapted linear layer W of the model, W x becomes W x + scale * B (A x). Its version
// is a hash of exactly what changes the model's output. So two adapters with the same version are interchangeable, and
// caches can use it as a key. peft.ts reads and writes files.

import { createHash } from "node:crypto";
import { linearShape, modulePath } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { LINEAR_NAMES, type LinearName } from "../families/tensor-names.ts";

export interface LoraPair {
  /** [rank, in] */
  a: Float32Array;
  /** [out, rank] */
  b: Float32Array;
}

/** The adapted linear layers of one decoder layer. Absent ones stay as in the base model. */
export type LoraLayer = Partial<Readonly<Record<LinearName, LoraPair>>>;

export interface LoraContent {
  rank: number;
  alpha: number;
  /** Rank-stabilised: scale = alpha / sqrt(rank) instead of alpha / rank. */
  rankStabilised: boolean;
  /** One per layer of the model. */
  layers: readonly LoraLayer[];
}

export interface LoraAdapter extends Readonly<LoraContent> {
  /** Lower-case hexadecimal SHA-256. */
  version: string;
  scale: number;
}

/** Factor on what the pairs add. */
export function loraScale({ rank, alpha, rankStabilised }: Omit<LoraContent, "layers">): number {
  return rankStabilised ? alpha / Math.sqrt(rank) : alpha / rank;
}

/** Completes an adapter; the arrays must not change afterwards. Throws RangeError if it does not fit the model. */
export function createAdapter(config: ModelConfig, content: LoraContent): LoraAdapter {
  const { rank, alpha, layers } = content;
  if (!Number.isInteger(rank) || rank < 1) throw new RangeError(`the rank must be a positive integer, found ${rank}`);
  if (!Number.isFinite(alpha)) throw new RangeError(`alpha must be a finite number, found ${alpha}`);
  if (layers.length !== config.numLayers) {
    throw new RangeError(`the adapter is for ${layers.length} layers, the model has ${config.numLayers}`);
  }
  const scale = loraScale(content);
  const hash = createHash("sha256").update(`lora ${rank} ${scale}\n`);
  for (const { layer, name, pair } of eachPair(layers)) {
    const [outSize, inSize] = linearShape(config, name);
    const where = `layer ${layer} ${modulePath(config, name)}`;
    checkValues(`${where} A`, pair.a, rank * inSize);
    checkValues(`${where} B`, pair.b, outSize * rank);
    hash.update(`${layer} ${name} ${pair.a.length} ${pair.b.length}\n`);
    hash.update(asBytes(pair.a)).update(asBytes(pair.b));
  }
  return { ...content, scale, version: hash.digest("hex") };
}

/** The pairs of an adapter in a fixed order: by layer, then as in LINEAR_NAMES. */
export function* eachPair(
  layers: readonly LoraLayer[],
): Generator<{ layer: number; name: LinearName; pair: LoraPair }> {
  for (const [layer, pairs] of layers.entries()) {
    for (const name of LINEAR_NAMES) {
      const pair = pairs[name];
      if (pair !== undefined) yield { layer, name, pair };
    }
  }
}

function checkValues(what: string, values: Float32Array, expected: number): void {
  if (values.length !== expected) throw new RangeError(`${what} has ${values.length} values, expected ${expected}`);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad !== -1) throw new RangeError(`${what} has the value ${values[bad]} at ${bad}: the adapter is broken`);
}

function asBytes(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
