// Metrics of a gradient step that are not part of its loss: how far the policy moved from the one that sampled, and how
// often ratios were clipped. They are finite for finite inputs, so they can be sent in events.

import { mean, populationStdDev } from "../data/advantage.ts";
import { ratioOf } from "./importance.ts";

/** The trained tokens of a step, one entry per token in every list. */
export interface StepTokens {
  logprobs: readonly number[];
  /** The current value where the sampler's is unknown. */
  oldLogprobs: readonly number[];
  ratios: readonly number[];
  advantages: readonly number[];
  entropies: readonly number[];
  /** Empty without a KL penalty. */
  klToReference: readonly number[];
}

export function stepDiagnostics(tokens: StepTokens, clip: { low: number; high: number }): Record<string, number> {
  const { logprobs, oldLogprobs, ratios } = tokens;
  const kl = (estimate: (current: number, old: number) => number) =>
    mean(logprobs.map((value, t) => estimate(value, oldLogprobs[t]!)));
  const k3Mean = kl(k3);
  return {
    entropy: mean(tokens.entropies),
    kl_policy_ref: mean(tokens.klToReference),
    /** Two estimates of KL(old || new): k1 = mean(old - new), and k3, which is never negative. */
    kl_old_new_k1: kl((current, old) => old - current),
    kl_old_new_k3: k3Mean,
    kl_div: k3Mean,
    clip_frac_low: mean(ratios.map((ratio) => (ratio < clip.low ? 1 : 0))),
    clip_frac_high: mean(ratios.map((ratio) => (ratio > clip.high ? 1 : 0))),
    ratio_mean: mean(ratios),
    ratio_max: ratios.reduce((max, ratio) => Math.max(max, ratio), 0),
    adv_mean: mean(tokens.advantages),
    adv_std: populationStdDev(tokens.advantages),
    probs_corr: probabilityCorrelation(oldLogprobs, logprobs),
  };
}

/**
 * How far the sampler's log-probabilities are from those of the trainer with the sampler's weights, over the tokens
 * whose sampler's value is known (not NaN). Empty without any.
 */
export function samplerDifference(logprobs: readonly number[], sampler: readonly number[]): Record<string, number> {
  const known = sampler.flatMap((value, t) => (Number.isNaN(value) ? [] : [Math.abs(logprobs[t]! - value)]));
  if (known.length === 0) return {};
  const largest = known.reduce((max, difference) => Math.max(max, difference), 0);
  return { sampler_logprob_diff_mean: mean(known), sampler_logprob_diff_max: largest };
}

/** e^(a-b) - (a-b) - 1. */
export function k3(a: number, b: number): number {
  return ratioOf(a - b) - (a - b) - 1;
}

/** Pearson correlation of e^old and e^new; 0 with fewer than two tokens or without variance. */
export function probabilityCorrelation(old: readonly number[], current: readonly number[]): number {
  if (old.length < 2) return 0;
  const a = old.map(Math.exp);
  const b = current.map(Math.exp);
  const spread = populationStdDev(a) * populationStdDev(b);
  if (!(spread > 0)) return 0;
  const [meanA, meanB] = [mean(a), mean(b)];
  return mean(a.map((value, t) => (value - meanA) * (b[t]! - meanB))) / spread;
}
