// Makes the first adapter of a model: LoRA on every linear layer, with A random and B zero, so it changes
// nothing until it is trained. Also copies the files of a step, for forks and rollbacks.

import { copyFileSync, linkSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { linearShape } from "../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { type LinearName, mapsOf } from "../../model/families/tensor-names.ts";
import { createAdapter, type LoraAdapter, type LoraPair } from "../../model/lora/lora-adapter.ts";
import { type Random, seededRandom } from "../random.ts";

// How large files of steps and gradients will be, before they are written: float32 values, and what describes them.

export interface StepSizes {
  /** An adapter without a state of the optimizer. */
  adapter: number;
  /** An adapter with two moments of each parameter. */
  step: number;
  gradients: number;
}

const VALUE_BYTES = 4;

/** More than the header of a tensor takes: its name, shape, type and place. */
const TENSOR_BYTES = 192;

/** More than adapter_config.json and the metadata of the files take. */
const OTHER_BYTES = 2048;

/** In bytes, a little more than they will be. `rank`: of the adapter. */
export function stepSizes(config: ModelConfig, rank: number): StepSizes {
  let factors = 0;
  for (const layer of config.layers) {
    for (const name of mapsOf(layer)) {
      const [out, input] = linearShape(config, name);
      factors += VALUE_BYTES * rank * (out + input) + 2 * TENSOR_BYTES;
    }
  }
  return { adapter: factors + OTHER_BYTES, step: 3 * factors + 2 * OTHER_BYTES, gradients: factors + OTHER_BYTES };
}

export interface LoraShape {
  rank: number;
  alpha: number;
}

/** A is uniform in ±1/sqrt(in), like in PEFT. */
export function identityAdapter(config: ModelConfig, { rank, alpha }: LoraShape, seed: number): LoraAdapter {
  const random = seededRandom(seed);
  const pair = (name: LinearName): LoraPair => {
    const [out, input] = linearShape(config, name);
    return { a: uniform(rank * input, 1 / Math.sqrt(input), random), b: new Float32Array(out * rank) };
  };
  const layers = config.layers.map((layer) => Object.fromEntries(mapsOf(layer).map((name) => [name, pair(name)])));
  return createAdapter(config, { rank, alpha, rankStabilised: false, layers });
}

/** Copies a step to a new folder. Files of steps never change, so they are linked where the file system can. */
export function copyStep(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    try {
      linkSync(source, target);
    } catch {
      // the file system has no links; any other problem shows up in the copy
      copyFileSync(source, target);
    }
  }
}

function uniform(size: number, bound: number, random: Random): Float32Array {
  const values = new Float32Array(size);
  for (let i = 0; i < size; i++) values[i] = (2 * random() - 1) * bound;
  return values;
}
