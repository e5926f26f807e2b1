// Finds the longest sequence that a trainer with this much memory can train. It follows from the sizes of the model
// alone, so the server knows it before a job starts and leaves longer sequences out when it normalises.

import type { ModelInfo } from "../../engine/contract.ts";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../model/linear/linear.ts";
import { type Keeping, keepingAlone } from "./packing/pack-plan.ts";
import { attentionBlock } from "./packing/piece-sizes.ts";
import { passBytes } from "./pass/pass-memory.ts";

/** In tokens, at most the engine's limit; 0 when nothing fits. */
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
