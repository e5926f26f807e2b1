// The losses that a client of a training run names. Each is a sum over targets and so can be computed in parts; the
// optimizer step divides by the number of active positions.

import { ratioOf } from "./importance.ts";

export type NamedLoss =
  /** -w * logprob */
  | { name: "cross_entropy" }
  /** -w * A * r, where r = exp(logprob - behavior logprob) */
  | { name: "importance_sampling" }
  /** -w * A * clip(r) * logprob, where clip(r) counts as a constant */
  | { name: "cispo"; clipLow: number; clipHigh: number };

/** What the loss needs to know about a target. With a weight or an advantage of 0 it contributes nothing. */
export interface LossTarget {
  weight: number;
  advantage: number;
  behaviorLogprob: number;
}

export interface TargetLoss {
  loss: number;
  /** d loss / d logprob */
  gradient: number;
}

export function targetLoss(loss: NamedLoss, logprob: number, target: LossTarget): TargetLoss {
  const { weight, advantage, behaviorLogprob } = target;
  if (loss.name === "cross_entropy") return { loss: -weight * logprob, gradient: -weight };
  const ratio = ratioOf(logprob - behaviorLogprob);
  if (loss.name === "importance_sampling") {
    const value = -weight * advantage * ratio;
    return { loss: value, gradient: value };
  }
  const gradient = -weight * advantage * Math.min(Math.max(ratio, loss.clipLow), loss.clipHigh);
  return { loss: gradient * logprob, gradient };
}
