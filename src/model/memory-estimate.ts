// How much memory a model takes, computed from its configuration alone. The linear layers are in the chosen type; the
// embedding keeps its stored one; norms, biases, routers and learned positions are float32. Adapters are not counted.

import { blockBytes, type CacheType } from "./attention/cache-type.ts";
import { longestRun } from "./attention/longest-run.ts";
import { eachTensor, expectedTensors, type TensorSpec } from "./checkpoint/expected-tensors.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import type { WeightType } from "./linear/linear.ts";

export interface MemoryEstimate {
  parameters: number;
  /** Of all weights in memory. */
  weightBytes: number;
  /** Of the linear layers among them. The runtime has them twice while it loads. */
  mapBytes: number;
  /** Of the keys and values of one token. */
  cacheBytesPerToken: number;
  /** Of the numbers between the layers in a step with a long piece of a prompt. */
  stepBytes: number;
}

/** Bytes of one weight: int8 has a scale for each output besides; int4 has one for every 32 weights. */
const WEIGHT_BYTES: Record<WeightType, number> = { float32: 4, int8: 1, int4: 0.5 + 4 / 32 };

/**
 * `storedBytes`: of one value of the embedding in the checkpoint: 2 for BF16 and F16, 4 for F32. `threads`: more of them
 * compute longer pieces of a prompt.
 */
export function estimateMemory(
  config: ModelConfig,
  type: WeightType,
  cacheType: CacheType,
  storedBytes = 2,
  threads = 2,
): MemoryEstimate {
  const tensors = expectedTensors(config);
  const { embedding, positions, head } = tensors;
  const wide = new Set([positions, ...tensors.layers.map(({ experts }) => experts?.router ?? null)]);
  let [parameters, mapBytes, otherBytes] = [0, 0, 0];
  for (const spec of eachTensor(tensors)) {
    const size = spec.shape.reduce((product, length) => product * length, 1);
    parameters += size;
    if (spec === embedding) otherBytes += size * storedBytes;
    else if (spec.shape.length === 1 || wide.has(spec)) otherBytes += 4 * size;
    else if (spec !== head) mapBytes += linearBytes(spec, type);
  }
  // The output head is a linear layer of its own, also where the checkpoint has it only as the embedding.
  mapBytes += linearBytes(head ?? embedding, type === "int4" ? "int8" : type);
  return {
    ...{ parameters, weightBytes: mapBytes + otherBytes, mapBytes },
    cacheBytesPerToken: blockBytes(config, 1, cacheType),
    stepBytes: longestRun(threads) * 4 * (6 * config.hiddenSize + 4 * config.intermediateSize),
  };
}

function linearBytes({ shape }: TensorSpec, type: WeightType): number {
  const inputs = shape.at(-1)!;
  const outputs = shape.slice(0, -1).reduce((product, length) => product * length, 1);
  const used = type === "int4" && inputs % 32 !== 0 ? "int8" : type;
  return outputs * inputs * WEIGHT_BYTES[used] + (used === "int8" ? outputs * 4 : 0);
}
