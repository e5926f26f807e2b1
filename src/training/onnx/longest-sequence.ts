// The longest sequence that a trainer with this much memory does not leave out: known from the model's sizes alone, before
// there is a trainer, so that jobs are normalised over what will really be trained.

import type { ModelInfo } from "../../engine/contract.ts";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../model/linear/linear.ts";
import { type Keeping, keepingAlone } from "./packing/pack-plan.ts";
import { attentionBlock } from "./packing/piece-sizes.ts";
import { passBytes } from "./pass/pass-memory.ts";

/** At most what the engine takes; 0 when nothing fits. */
export function longestSequence(
  { folder, weightType }: { folder: string; weightType: WeightType },
  { positionsPerBlock, maxModelLen }: Pick<ModelInfo, "positionsPerBlock" | "maxModelLen">,
  activationBytes: number,
): number {
  const config = readModelConfig(folder);
  const block = attentionBlock(weightType, positionsPerBlock);
  const limits = {
    bytes: (rows: number, longest: number, keeping: Keeping) => passBytes(config, block, rows, longest, keeping),
    maxBytes: activationBytes,
  };
  // a longer sequence never takes less memory
  let [fits, tooLong] = [0, maxModelLen + 1];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (keepingAlone(middle, limits) === null) tooLong = middle;
    else fits = middle;
  }
  return fits;
}
