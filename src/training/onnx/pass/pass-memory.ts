// Estimates the memory of a pass from the sizes of the model, to plan micro-batches. Kept values are counted exactly;
// what a stage needs while it runs is rounded up from measurements.
import { type ModelConfig, readModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { LimitsTask } from "../../contract.ts";
import {
  ATTENTION_CHUNK,
  attentionBlock,
  headPiece,
  type Keeping,
  keepingAlone,
  SLICE_ROWS,
} from "../packing/pack-plan.ts";
import { keptGroups } from "./layer-pieces.ts";
import { groupOut } from "./lora-sites.ts";

/** Peak bytes of a forward and backward pass over `rows` rows, whose longest sequence has `longest` tokens. */
export function passBytes(
  config: ModelConfig,
  positionsPerBlock: number | null,
  rows: number,
  longest: number,
  keeping: Keeping,
): number {
  const { hiddenSize, intermediateSize, numHeads, numKvHeads, headDim, numLayers, vocabSize } = config;
  const queryWidth = numHeads * headDim;
  const keyWidth = numKvHeads * headDim;
  const everything = config.layers.map(({ experts }, layer) => {
    const groups = Object.values(keptGroups(config, layer)).flat();
    const products = groups.reduce((sum, maps) => sum + groupOut(config, maps), 0);
    const ofExperts =
      experts === null ? 0 : experts.count + experts.perToken * (2 * experts.intermediateSize + hiddenSize);
    return hiddenSize + 2 * queryWidth + 2 * keyWidth + products + ofExperts;
  });
  const ofLayers = everything.reduce((sum, each) => sum + each, 0);
  const kept = keeping === "everything" ? ofLayers : numLayers * hiddenSize + Math.max(...everything);
  const passing = 3 * hiddenSize + 4 * queryWidth + 4 * keyWidth;
  const wide = config.layers.reduce((most, { experts }) => {
    return Math.max(most, experts === null ? 0 : experts.perToken * (experts.intermediateSize + hiddenSize));
  }, intermediateSize);
  const running = 20 * hiddenSize + 20 * wide + 4 * queryWidth + 4 * keyWidth;
  const calls =
    ATTENTION_CHUNK * longest * numHeads * (positionsPerBlock === null ? 6 : 6 + headDim / positionsPerBlock);
  const logits = 5 * Math.min(rows, headPiece(config)) * vocabSize;
  return 4 * (rows * (kept + passing) + Math.min(rows, SLICE_ROWS) * running + calls + logits);
}

// Finds the longest sequence that a trainer with this much memory can train. It follows from the sizes of the model
// alone, so the server knows it before a job starts and leaves longer sequences out when it normalises.

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
