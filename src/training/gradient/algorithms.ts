// The losses of a token by name: the algorithms of jobs, and the losses that runs ask for.
import { ratioOf } from "./importance.ts";

// A policy-gradient algorithm: the loss of one token, given its importance ratio and advantage. The steps around it
// (ratio level, cap, mask, tau, KL, truncated importance sampling, weights) are in loss.ts. To add an algorithm,
// write it here, add it to ALGORITHMS and give it a table test.

export interface TokenTerms {
  /** Importance ratio after level, cap and mask. */
  ratio: number;
  /** Advantage after tau and KL penalty. */
  advantage: number;
  /** Log-probability under the current weights. */
  logprob: number;
  clipLow: number;
  clipHigh: number;
}

export interface TokenLoss {
  loss: number;
  /** Derivative through the ratio. */
  dRatio: number;
  /** Derivative directly through the log-probability. */
  dLogprob: number;
}

interface Algorithm {
  readonly name: string;
  readonly defaultEpsilon: number;
  /** null = the same as epsilon. */
  readonly defaultEpsilonHigh: number | null;
  tokenLoss(terms: TokenTerms): TokenLoss;
}

// PPO's clipped surrogate: -min(r * A, clip(r) * A). A token whose ratio is already past the clip in the direction of
// its advantage has no gradient.
const ppo: Algorithm = {
  name: "ppo",
  defaultEpsilon: 0.2,
  defaultEpsilonHigh: null,
  tokenLoss({ ratio, advantage, clipLow, clipHigh }) {
    const clipped = Math.min(Math.max(ratio, clipLow), clipHigh);
    if (ratio * advantage <= clipped * advantage) return { loss: -ratio * advantage, dRatio: -advantage, dLogprob: 0 };
    return { loss: -clipped * advantage, dRatio: 0, dLogprob: 0 };
  },
};

// CISPO: REINFORCE with a clipped importance weight that counts as a constant. Every token keeps its gradient; the clip
// only limits its weight. Loss: -clip(r) * A * logprob. Gradient: -clip(r) * A.
const cispo: Algorithm = {
  name: "cispo",
  defaultEpsilon: 1,
  defaultEpsilonHigh: 4,
  tokenLoss({ ratio, advantage, logprob, clipLow, clipHigh }) {
    const weight = Math.min(Math.max(ratio, clipLow), clipHigh);
    return { loss: -weight * advantage * logprob, dRatio: 0, dLogprob: -weight * advantage };
  },
};

// The algorithms that a job can name.

const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map(
  [cispo, ppo].map((algorithm) => [algorithm.name, algorithm]),
);

export const ALGORITHM_NAMES: readonly string[] = [...ALGORITHMS.keys()];

export function algorithmNamed(name: string): Algorithm {
  const algorithm = ALGORITHMS.get(name);
  if (!algorithm) throw new Error(`unknown algorithm "${name}"; known: ${ALGORITHM_NAMES.join(", ")}`);
  return algorithm;
}

// The losses that a client of a training run names. Each is a sum over targets and so can be computed in parts; the
// optimizer step divides by the number of active positions.

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
