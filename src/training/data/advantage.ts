// Turns rewards into advantages and token weights: within each group, then over the whole job. Arithmetic in float64.
// A reward that equals the mean of its group up to rounding gives exactly 0, so that normalisation cannot turn rounding
// noise into a training signal.

/** Smaller differences, relative to the group's largest reward (at least 1), are rounding. */
const ROUNDING = 1e-12;
const STD_EPSILON = 1e-6;
const WEIGHT_EPSILON = 1e-6;

export function mean(values: readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return values.length === 0 ? 0 : sum / values.length;
}

export function populationStdDev(values: readonly number[]): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)));
}

export function hasZeroVariance(rewards: readonly number[]): boolean {
  const { low, high, rounding } = extent(rewards);
  return rewards.length < 2 || high - low <= rounding;
}

/** A = R - mean, divided by (population std + 1e-6) when `scaleRewards`. Exactly 0 means nothing to learn. */
export function groupAdvantages(rewards: readonly number[], scaleRewards: boolean): number[] {
  if (hasZeroVariance(rewards)) return rewards.map(() => 0);
  const { rounding } = extent(rewards);
  const centre = mean(rewards);
  const scale = scaleRewards ? populationStdDev(rewards) + STD_EPSILON : 1;
  return rewards.map((reward) => (Math.abs(reward - centre) <= rounding ? 0 : (reward - centre) / scale));
}

/** `rounding` grows with the largest reward, like the error of the sum. */
function extent(rewards: readonly number[]): { low: number; high: number; rounding: number } {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const reward of rewards) {
    low = Math.min(low, reward);
    high = Math.max(high, reward);
  }
  return { low, high, rounding: ROUNDING * Math.max(1, Math.abs(low), Math.abs(high)) };
}

/** A trajectory's advantage within its group, and its trainable tokens over all its histories. */
export interface TrajectorySignal {
  advantage: number;
  trainableTokens: number;
}

/** What every trainable token of a trajectory gets. */
export interface TokenSignal {
  advantage: number;
  weight: number;
}

/**
 * Returns one entry per trajectory of the job. Every trajectory has the same total weight. The mean token weight is 1
 * and the mean of |A| * w over tokens is 1, so the overall scale of rewards never matters.
 */
export function tokenSignals(trajectories: readonly TrajectorySignal[], advantageBalance: number): TokenSignal[] {
  const totalTokens = trajectories.reduce((sum, { trainableTokens }) => sum + trainableTokens, 0);
  if (totalTokens === 0) return trajectories.map(() => ({ advantage: 0, weight: 0 }));

  const raw = trajectories.map(({ trainableTokens }) => 1 / (trainableTokens + WEIGHT_EPSILON));
  const meanRaw =
    trajectories.reduce((sum, { trainableTokens }, i) => sum + raw[i]! * trainableTokens, 0) / totalTokens;
  const weights = raw.map((weight) => weight / meanRaw);
  const balanced = trajectories.map(({ advantage }) => balance(advantage, advantageBalance));

  let magnitude = 0;
  for (const [i, { trainableTokens }] of trajectories.entries()) {
    magnitude += Math.abs(balanced[i]!) * weights[i]! * trainableTokens;
  }
  magnitude /= totalTokens;
  const scale = magnitude > 0 ? 1 / magnitude : 0;
  return trajectories.map((_, i) => ({ advantage: balanced[i]! * scale, weight: weights[i]! }));
}

function balance(advantage: number, amount: number): number {
  if (amount > 0 && advantage < 0) return advantage * (1 - amount);
  if (amount < 0 && advantage > 0) return advantage * (1 + amount);
  return advantage;
}
