// A token matrix as rows of a pass: which targets are read, and what the loss needs for each of them.

import type { TokenMatrix } from "../contract.ts";
import type { LossTarget, NamedLoss } from "../gradient/named-loss.ts";
import type { RowSequence } from "./packing/micro-batch.ts";

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

/** The smallest log-probability on the wire. */
const LEAST = -9999;

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
