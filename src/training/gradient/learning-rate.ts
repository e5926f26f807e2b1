// The learning rate of a gradient step: the configured one times two optional multipliers.

import { mean } from "../data/advantage.ts";

/** n^power for the n sequences of a gradient step. */
export function sequenceCountMultiplier(sequences: number, power: number): number {
  return power === 0 ? 1 : Math.max(1, sequences) ** power;
}

/**
 * How much the spread of rewards shrank since the first step: a straight line through the history, its value at the last
 * step (at least 0) divided by its intercept. 1 while there are fewer than two points or the intercept is not positive.
 */
export function rewardSpreadMultiplier(history: readonly { step: number; rewardStdDev: number }[]): number {
  if (history.length < 2) return 1;
  const meanStep = mean(history.map(({ step }) => step));
  const meanSpread = mean(history.map(({ rewardStdDev }) => rewardStdDev));
  let covariance = 0;
  let variance = 0;
  for (const { step, rewardStdDev } of history) {
    covariance += (step - meanStep) * (rewardStdDev - meanSpread);
    variance += (step - meanStep) ** 2;
  }
  if (variance === 0) return 1;
  const slope = covariance / variance;
  const intercept = meanSpread - slope * meanStep;
  const last = Math.max(...history.map(({ step }) => step));
  const fitted = Math.max(0, intercept + slope * last);
  return intercept > 0 ? fitted / intercept : 1;
}
