// Numbers behind the charts of a job.
import type { GroupRow } from "./records.ts";

export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Bins of equal width from the least to the largest value. Values that are all the same make one bin. */
export function histogram(values: readonly number[], bins = 24): Bin[] {
  if (values.length === 0) return [];
  const { low, high } = rangeOf(values);
  if (low === high) return [{ from: low, to: high, count: values.length }];
  const width = (high - low) / bins;
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor((value - low) / width))]! += 1;
  return counts.map((count, i) => ({
    from: low + i * width,
    to: i === bins - 1 ? high : low + (i + 1) * width,
    count,
  }));
}

export interface Point {
  /** Tokens of the rollout. */
  length: number;
  reward: number;
  isTrained: boolean;
}

/** Every rollout that has a reward and a length. */
export function points(groups: readonly Pick<GroupRow, "trajectories">[]): Point[] {
  return groups.flatMap(({ trajectories }) =>
    trajectories.flatMap(({ tokens, reward, status }) =>
      // what was left out before it was tokenised has no length
      tokens === null || tokens === 0 || reward === null
        ? []
        : [{ length: tokens, reward, isTrained: status === "trained" }],
    ),
  );
}

/** Rollouts that began so many steps before the job. */
export interface Age {
  steps: number;
  count: number;
}

/** The freshest first. Rollouts that do not say what they began with are left out. */
export function agesOf(groups: readonly Pick<GroupRow, "trajectories">[], fromStep: number): Age[] {
  const counts = new Map<number, number>();
  for (const { initial_policy_version: version } of groups.flatMap(({ trajectories }) => trajectories)) {
    if (version !== null) counts.set(fromStep - version, (counts.get(fromStep - version) ?? 0) + 1);
  }
  return [...counts].map(([steps, count]) => ({ steps, count })).sort((one, other) => one.steps - other.steps);
}

/** Without spreading: a job may have more values than a call may have arguments. */
export function rangeOf(values: readonly number[]): { low: number; high: number } {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low, high };
}

/** Maps a range to 0…1; the middle if the range is one value. */
export function scale(values: readonly number[]): (value: number) => number {
  const { low, high } = rangeOf(values);
  return (value) => (high > low ? (value - low) / (high - low) : 0.5);
}

/** Height of a reward's bar between 0 and 1. Bars begin at zero, or at the least reward if that is below. */
export function barHeight(reward: number, low: number, high: number): number {
  const [bottom, top] = [Math.min(0, low), Math.max(0, high)];
  return top > bottom ? (reward - bottom) / (top - bottom) : 0;
}
