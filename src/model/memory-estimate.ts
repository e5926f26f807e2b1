// How much memory a model takes, computed from its configuration alone. The linear maps are in the chosen type; the
// embedding keeps its stored one; norms and biases are float32. Not counted: Node and the runtime (about 150 MB), the
// activations of a step, and adapters.

import { eachTensor, expectedTensors } from "./checkpoint/expected-tensors.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { KvPool } from "./kv-pool.ts";
import type { WeightType } from "./linear/linear.ts";

export interface MemoryEstimate {
  parameters: number;
  /** Of the weights in memory. */
  weightBytes: number;
  /** Of the keys and values of one token, in float32. */
  cacheBytesPerToken: number;
}

/** Bytes of one weight: int8 has a scale for each output besides; int4 has one for every 32 weights. */
const WEIGHT_BYTES: Record<WeightType, number> = { float32: 4, int8: 1, int4: 0.5 + 4 / 32 };

/** `storedBytes`: of one value in the checkpoint: 2 for BF16 and F16, 4 for F32. */
export function estimateMemory(config: ModelConfig, type: WeightType, storedBytes = 2): MemoryEstimate {
  const tensors = expectedTensors(config);
  let [parameters, weightBytes] = [0, 0];
  for (const spec of eachTensor(tensors)) {
    const size = spec.shape.reduce((product, length) => product * length, 1);
    parameters += size;
    if (spec === tensors.embedding) weightBytes += size * storedBytes;
    else weightBytes += spec.shape.length === 1 ? size * 4 : linearBytes(spec.shape, type);
  }
  // The output head is a linear map of its own, also where the checkpoint has it only as the embedding.
  if (tensors.head === null) weightBytes += linearBytes(tensors.embedding.shape, type);
  return { parameters, weightBytes, cacheBytesPerToken: KvPool.bytesPerBlock(config, 1) };
}

function linearBytes(shape: readonly number[], type: WeightType): number {
  const inputs = shape.at(-1)!;
  const outputs = shape.slice(0, -1).reduce((product, length) => product * length, 1);
  const used = type === "int4" && inputs % 32 !== 0 ? "int8" : type;
  return outputs * inputs * WEIGHT_BYTES[used] + (used === "int8" ? outputs * 4 : 0);
}
