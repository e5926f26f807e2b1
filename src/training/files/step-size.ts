// How large files of steps and gradients will be, before they are written: float32 values, and what describes them.

import { linearShape } from "../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { mapsOf } from "../../model/families/tensor-names.ts";

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
