// The policy loss of a gradient step, and its derivative with respect to every token's log-probability. All
// configurable arithmetic is here: a pure function over flat arrays of trainable tokens, in which sequences are ranges.
// A step can be computed in parts: sequences share only the mean of the KL penalty. The order of the numbered steps matters.

import type { LossConfig } from "../config.ts";
import { algorithmNamed } from "./algorithms.ts";
import { backpropRatios, importanceRatios, ratioOf } from "./importance.ts";

/** Trainable tokens only, one sequence after the other. */
export interface LossInputs {
  /** Log-probabilities under the current weights. */
  logprobs: Float64Array;
  /** NaN = unknown. The current value is used as a constant, so the ratio is 1. */
  oldLogprobs: Float64Array;
  advantages: Float64Array;
  weights: Float64Array;
  /** First token of each sequence, then the total number of tokens. */
  sequenceStarts: readonly number[];
  /** The sampler's values, if `oldLogprobs` were recomputed before the first step; otherwise null. */
  samplerLogprobs: Float64Array | null;
  /** Log-probabilities under the reference policy; null = no KL penalty. */
  referenceLogprobs: Float64Array | null;
  /** `klMean` of the whole gradient step; null = these tokens are all of it. */
  klMean: number | null;
  /** Number of trainable tokens in the whole gradient step; these may be a part of it. */
  stepTokens: number;
}

export interface LossOutputs {
  /** Sum over these tokens, divided by `stepTokens`. */
  loss: number;
  /** d loss / d logprobs. */
  gradient: Float64Array;
  /** Importance ratio per token at the configured level, before cap and mask. */
  ratio: Float64Array;
  /** After tau and KL penalty, per token. */
  advantage: Float64Array;
  /** Log-probability minus that of the reference, per token; null without a KL penalty. */
  klToReference: Float64Array | null;
}

/** The interval that the algorithm clips ratios to. */
export function clipRange(config: LossConfig): { low: number; high: number } {
  const algorithm = algorithmNamed(config.algorithm);
  const epsilon = config.epsilon ?? algorithm.defaultEpsilon;
  return { low: 1 - epsilon, high: 1 + (config.epsilonHigh ?? algorithm.defaultEpsilonHigh ?? epsilon) };
}

export function policyLoss(inputs: LossInputs, config: LossConfig): LossOutputs {
  const { logprobs, weights, sequenceStarts: starts } = inputs;
  const size = logprobs.length;
  const algorithm = algorithmNamed(config.algorithm);
  const { low: clipLow, high: clipHigh } = clipRange(config);

  const old = knownLogprobs(inputs);
  const difference = logprobs.map((value, t) => value - old[t]!);
  const ratios = importanceRatios(difference, starts, config.importanceSamplingLevel);
  const kl = klPenalty(inputs, config);

  const gradient = new Float64Array(size);
  const dRatio = new Float64Array(size);
  const advantages = new Float64Array(size);
  const scale = 1 / Math.max(1, inputs.stepTokens);
  let loss = 0;
  for (let t = 0; t < size; t++) {
    // 1. tau, 2. KL penalty: both change the advantage and carry no gradient
    let advantage = inputs.advantages[t]! - (config.tau ?? 0) * difference[t]!;
    if (kl) advantage += config.klPenaltyCoef * (kl.mean - kl.perToken[t]!);
    advantages[t] = advantage;
    // 3. cap: a capped ratio is a constant
    const capped = config.maxImportanceWeight !== null && ratios.ratio[t]! > config.maxImportanceWeight;
    let ratio = capped ? config.maxImportanceWeight! : ratios.ratio[t]!;
    // 4. mask
    const masked = config.maskProbRatio && !(ratio > clipLow && ratio < clipHigh);
    if (masked && !config.artExactMasking) continue;
    if (masked) ratio = 0;
    // 5. the algorithm
    const term = algorithm.tokenLoss({ ratio, advantage, logprob: logprobs[t]!, clipLow, clipHigh });
    // 6. truncated importance sampling, 7. weight and mean
    const factor = truncation(inputs, old, ratio, t, config) * weights[t]! * scale;
    loss += term.loss * factor;
    gradient[t] = term.dLogprob * factor;
    dRatio[t] = capped || masked ? 0 : term.dRatio * factor;
  }
  backpropRatios(ratios, dRatio, starts, gradient);
  return { loss, gradient, ratio: ratios.ratio, advantage: advantages, klToReference: kl?.perToken ?? null };
}

/** The old log-probabilities, or the current ones where they are unknown. */
export function knownLogprobs({ oldLogprobs, logprobs }: Pick<LossInputs, "oldLogprobs" | "logprobs">): Float64Array {
  return oldLogprobs.map((value, t) => (Number.isNaN(value) ? logprobs[t]! : value));
}

type KlInputs = Pick<LossInputs, "logprobs" | "oldLogprobs" | "referenceLogprobs">;

/** Whether the loss has a KL penalty, and whether it needs the log-probabilities under the current weights. */
export function klNeeds(inputs: Omit<KlInputs, "logprobs">, config: LossConfig): "nothing" | "old" | "current" {
  if (!inputs.referenceLogprobs || config.klPenaltyCoef <= 0) return "nothing";
  return config.klPenaltySource === "sample" && !inputs.oldLogprobs.some(Number.isNaN) ? "old" : "current";
}

/** Mean difference to the reference policy. `inputs`: all trainable tokens of a gradient step, in the order of their sequences. */
export function klMean(inputs: KlInputs, config: LossConfig): number {
  return meanOf(klPerToken(inputs, config));
}

function klPerToken(inputs: KlInputs, config: LossConfig): Float64Array {
  const source = config.klPenaltySource === "sample" ? knownLogprobs(inputs) : inputs.logprobs;
  return source.map((value, t) => value - inputs.referenceLogprobs![t]!);
}

/** Difference to the reference policy per token, and its mean over the gradient step, which makes the penalty zero-sum there. */
function klPenalty(inputs: LossInputs, config: LossConfig): { perToken: Float64Array; mean: number } | null {
  if (klNeeds(inputs, config) === "nothing") return null;
  const perToken = klPerToken(inputs, config);
  return { perToken, mean: inputs.klMean ?? meanOf(perToken) };
}

function meanOf(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}

function truncation(inputs: LossInputs, old: Float64Array, ratio: number, t: number, config: LossConfig): number {
  const limit = config.truncatedImportanceSampling;
  if (limit === null) return 1;
  const sampler = inputs.samplerLogprobs?.[t];
  if (sampler === undefined) return Math.min(ratio, limit);
  return Number.isNaN(sampler) ? Math.min(1, limit) : Math.min(ratioOf(old[t]! - sampler), limit);
}
