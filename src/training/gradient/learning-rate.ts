// Two optional multipliers of the learning rate.

import { mean } from "../data/advantage.ts";

/** n^power for a gradient step with n sequences. */
export function sequenceCountMultiplier(sequences: number, power: number): number {
  return power === 0 ? 1 : Math.max(1, sequences) ** power;
}

/**
 * How far the spread of rewards has shrunk: a straight line is fitted to the history, and its value at the last step
 * (at least 0) is divided by its intercept. 1 with fewer than two points or an intercept that is not positive.
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
