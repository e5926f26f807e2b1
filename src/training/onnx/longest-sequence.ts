// Finds the longest sequence that a trainer with this much memory can train. It follows from the sizes of the model
// alone, so the server knows it before a job starts and leaves longer sequences out when it normalises.

import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import type { LimitsTask } from "../contract.ts";
import { type Keeping, keepingAlone } from "./packing/pack-plan.ts";
import { attentionBlock } from "./packing/piece-sizes.ts";
import { passBytes } from "./pass/pass-memory.ts";

export const NO_BFLOAT16 = "the embedded trainer has no bfloat16 weights";

/** In tokens, at most what is served; 0 when nothing fits. */
export function longestSequence(task: Omit<LimitsTask, "rank">): number {
  const { baseModel, weights, positionsPerBlock, activationBytes, maxSequenceLength } = task;
  if (weights === "bfloat16") throw new Error(NO_BFLOAT16);
  const config = readModelConfig(baseModel);
  const block = attentionBlock(weights, positionsPerBlock);
  const limits = {
    bytes: (rows: number, longest: number, keeping: Keeping) => passBytes(config, block, rows, longest, keeping),
    maxBytes: activationBytes,
  };
  // a longer sequence never takes less memory
  let [fits, tooLong] = [0, maxSequenceLength + 1];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (keepingAlone(middle, limits) === null) tooLong = middle;
    else fits = middle;
  }
  return fits;
}
