// What the loss asks of every token of a rollout: the trainer's own code, over what the sampler and the trainer recorded.
import { clipRange, policyLoss } from "../../src/training/gradient/loss.ts";
import type { Sequence, TokenNumbers } from "../jobs/records.ts";
import { type Config, lossConfig } from "./knobs.ts";
import type { Signal } from "./signals.ts";

/** Numbers of one sequence, in the shape in which the server tells the trainer's. */
export type Numbers = TokenNumbers["sequences"][number];

export interface LossParts {
  sequence: Sequence;
  index: number;
  signal: Pick<Signal, "advantage" | "weight">;
  /** What the trainer recorded; without it every ratio is 1. */
  recorded: Numbers | undefined;
  /** Settings of the job. */
  job: Config;
  /** The settings to try. */
  config: Config;
  /** Log-probabilities under the reference policy, by position; null = unknown. */
  reference: readonly number[] | null;
  /** Trained tokens of the gradient step. */
  stepTokens: number;
}

export interface SequenceLoss {
  numbers: Numbers;
  loss: number;
  clipped: number;
  /** Whether the KL penalty, if there is one, is centred as the trainer does. */
  isCentred: boolean;
}

export function sequenceLoss(parts: LossParts): SequenceLoss {
  const { sequence, recorded, signal, job } = parts;
  const config = lossConfig(parts.config);
  const positions = sequence.mask.flatMap((bit, at) => (bit === 1 ? [at] : []));
  const sampler = Float64Array.from(positions, (at) => sequence.logprobs[at] ?? Number.NaN);
  const logprobs = sampler.map((value, t) => recorded?.values.new_logprob?.[t] ?? (Number.isNaN(value) ? 0 : value));
  const isRecomputed = job.precalculate_logprobs === true && recorded !== undefined;
  // Only the ratio was kept of log-probabilities that the trainer computed itself.
  const oldLogprobs = isRecomputed
    ? logprobs.map((value, t) => value - Math.log(recorded.values.ratio?.[t] ?? 1))
    : sampler;
  const known = oldLogprobs.map((value, t) => (Number.isNaN(value) ? logprobs[t]! : value));
  const referenceLogprobs = referenceOf(parts, positions, job.kl_penalty_source === "sample" ? known : logprobs);
  const isWholeStep = parts.stepTokens === positions.length;
  const klMean = isWholeStep ? null : recordedMean(parts, positions, { logprobs, known });
  const result = policyLoss(
    {
      ...{ logprobs, oldLogprobs, sequenceStarts: [0, positions.length], stepTokens: parts.stepTokens },
      advantages: new Float64Array(positions.length).fill(signal.advantage),
      weights: new Float64Array(positions.length).fill(signal.weight),
      samplerLogprobs: isRecomputed ? sampler : null,
      ...{ referenceLogprobs, klMean },
    },
    config,
  );
  const { low, high } = clipRange(config);
  const clipped = Array.from(result.ratio, (ratio) => (ratio < low ? -1 : ratio > high ? 1 : 0));
  return {
    numbers: {
      sequence: parts.index,
      positions,
      values: {
        new_logprob: [...logprobs],
        ratio: [...result.ratio],
        clipped,
        advantage: [...result.advantage],
        weight: positions.map(() => signal.weight),
        gradient: [...result.gradient],
        reference_kl: positions.map((_, t) => result.klToReference?.[t] ?? null),
      },
    },
    loss: result.loss,
    clipped: clipped.filter((side) => side !== 0).length,
    isCentred: result.klToReference === null || isWholeStep || klMean !== null,
  };
}

/**
 * The mean that the trainer centred its KL penalty on, from what it made of the advantages; null if it had none, or compared
 * other log-probabilities.
 */
function recordedMean(
  { recorded, sequence, job, config }: LossParts,
  positions: readonly number[],
  { logprobs, known }: { logprobs: Float64Array; known: Float64Array },
): number | null {
  const { klPenaltyCoef, klPenaltySource, tau } = lossConfig(job);
  const { advantage, reference_kl: distance } = recorded?.values ?? {};
  if (!(klPenaltyCoef > 0) || klPenaltySource !== config.kl_penalty_source || positions.length === 0) return null;
  let sum = 0;
  for (const [t, at] of positions.entries()) {
    const [used, far] = [advantage?.[t] ?? null, distance?.[t] ?? null];
    if (used === null || far === null) return null;
    const moved = (tau ?? 0) * (logprobs[t]! - known[t]!);
    sum += far + (used - sequence.advantages[at]! + moved) / klPenaltyCoef;
  }
  return sum / positions.length;
}

/** The trainer kept the distance to the reference: `compared` minus the reference. */
function referenceOf({ recorded, reference }: LossParts, positions: number[], compared: Float64Array) {
  const kept = recorded?.values.reference_kl;
  if (kept?.every((value) => value !== null)) return compared.map((value, t) => value - kept[t]!);
  return reference === null ? null : Float64Array.from(positions, (at) => reference[at]!);
}

/** How many tokens a sequence's gradient step has; `isExact` is false if that cannot be known here. */
export function stepTokensOf(
  { mask, gradient_step_tokens }: Sequence,
  config: Config,
  signals: { tokens: number; isSameSet: boolean },
): { tokens: number; isExact: boolean } {
  const own = mask.filter((bit) => bit === 1).length;
  if (config.grad_accumulation_sequences === "all") return { tokens: signals.tokens, isExact: true };
  if (config.grad_accumulation_sequences === 1 && config.packed_sequence_length === null) {
    return { tokens: own, isExact: true };
  }
  return { tokens: gradient_step_tokens ?? own, isExact: gradient_step_tokens !== null && signals.isSameSet };
}
