// Reads the sequences of a task, with what the loss needs for every trained token.
import { createReadStream } from "node:fs";
import { linesOf } from "../../json/json.ts";
import type { BatchSequence, TokenMatrix } from "../contract.ts";
import type { LossTarget, NamedLoss } from "../gradient/algorithms.ts";
import type { RowSequence } from "./packing/micro-batch.ts";

export interface TaskSequence extends RowSequence {
  group: number;
  advantage: number;
  weight: number;
  /** One log-probability per trained token, as the sampler reported it, within [-9999, 0]; NaN = unknown. */
  sampler: Float64Array;
  /** Recomputed before the first step, when the task asks for it. */
  precalculated: Float64Array | null;
  /** Log-probabilities under the reference policy, when there is one. */
  reference: Float64Array | null;
}

/** The smallest log-probability on the wire. */
const LEAST = -9999;

export async function readBatch(path: string): Promise<TaskSequence[]> {
  const sequences: TaskSequence[] = [];
  for await (const line of linesOf(createReadStream(path, { encoding: "utf8" }))) {
    if (line !== "") sequences.push(taskSequence(JSON.parse(line) as BatchSequence, sequences.length));
  }
  return sequences;
}

function taskSequence({ ids, mask, oldLogprobs, ...signal }: BatchSequence, index: number): TaskSequence {
  // position p predicts token p + 1
  const trained = mask.flatMap((bit, i) => (bit === 1 && i > 0 ? [i] : []));
  return {
    index,
    ids: Int32Array.from(ids),
    predicting: Int32Array.from(trained, (i) => i - 1),
    targets: Int32Array.from(trained, (i) => ids[i]!),
    sampler: Float64Array.from(trained, (i) => Math.min(Math.max(oldLogprobs[i] ?? Number.NaN, LEAST), 0)),
    precalculated: null,
    reference: null,
    ...signal,
  };
}

// A token matrix as rows of a pass: which targets are read, and what the loss needs for each of them.

export interface ReadMatrix extends RowSequence {
  group: number;
  /** One per read. */
  losses: LossTarget[];
  /** One per read, filled in by the pass. */
  logprobs: Float32Array;
  /** Positions with a target that counts in the loss. */
  active: number[];
  policyVersions: readonly number[] | null;
}

/** `everything`: also reads targets that do not count in the loss. */
export function readMatrix(matrix: TokenMatrix, index: number, loss: NamedLoss, everything: boolean): ReadMatrix {
  const { ids, width, targets, weights, advantages, behaviorLogprobs, group, policyVersions } = matrix;
  // what makes a target count, as ART defines it
  const coefficients = loss.name === "cross_entropy" ? weights! : advantages!;
  const counts = (i: number) => coefficients[i] !== 0;
  const read = targets.flatMap((_, i) => (everything || counts(i) ? [i] : []));
  const positionOf = (i: number) => Math.floor(i / width);
  return {
    ...{ index, group, policyVersions },
    ids: Int32Array.from(ids),
    predicting: Int32Array.from(read, positionOf),
    targets: Int32Array.from(read, (i) => targets[i]!),
    losses: read.map((i) => ({
      weight: weights?.[i] ?? (counts(i) ? 1 : 0),
      advantage: advantages?.[i] ?? 0,
      behaviorLogprob: Math.min(Math.max(behaviorLogprobs?.[i] ?? 0, LEAST), 0),
    })),
    logprobs: new Float32Array(read.length),
    active: [...new Set(targets.flatMap((_, i) => (counts(i) ? [positionOf(i)] : [])))],
  };
}
