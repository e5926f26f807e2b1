// Numbers about the submitted groups themselves, before any tokenising: what `log` and every job report.
// Names are the ones clients of such services already chart.

import { hasZeroVariance, mean, populationStdDev } from "./advantage.ts";

/** The part of a group these numbers need. */
export interface ScoredGroup {
  trajectories: readonly { reward: number; metrics: Readonly<Record<string, number>> }[];
  /** Failed rollouts: counted, never trained. */
  exceptions: number;
  metrics: Readonly<Record<string, number>>;
}

/** Mean over the groups with more than one trajectory of the population standard deviation of their rewards. */
export function rewardStdDev(groups: readonly ScoredGroup[]): number {
  const several = groups.filter(({ trajectories }) => trajectories.length > 1);
  return mean(several.map(({ trajectories }) => populationStdDev(trajectories.map(({ reward }) => reward))));
}

/** Without rewards nothing is said of them: 0 may be better than any, and clients keep the step with the best. */
export function rewardMetrics(groups: readonly ScoredGroup[]): Record<string, number> {
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  const exceptions = groups.reduce((sum, group) => sum + group.exceptions, 0);
  return {
    ...(rewards.length > 0 ? { reward: mean(rewards) } : {}),
    ...(groups.some(({ trajectories }) => trajectories.length > 1) ? { reward_std_dev: rewardStdDev(groups) } : {}),
    exception_rate: exceptions / Math.max(1, rewards.length + exceptions),
  };
}

/** Counts of what was submitted and what can carry a signal. */
export function groupCounts(groups: readonly ScoredGroup[]): Record<string, number> {
  return {
    num_groups_submitted: groups.length,
    num_groups_trainable: groups.filter(
      ({ trajectories }) => trajectories.length > 1 && !hasZeroVariance(trajectories.map(({ reward }) => reward)),
    ).length,
    num_trajectories: groups.reduce((sum, group) => sum + group.trajectories.length + group.exceptions, 0),
  };
}

/** Everything `log` merges into a checkpoint: `<split>/reward`, each trajectory metric, each group metric. */
export function splitMetrics(split: string, groups: readonly ScoredGroup[]): Record<string, number> {
  const trajectoryMetrics = averages(groups.flatMap(({ trajectories }) => trajectories.map(({ metrics }) => metrics)));
  const groupMetrics = averages(groups.map(({ metrics }) => metrics));
  return Object.fromEntries([
    ...Object.entries(trajectoryMetrics).map(([name, value]) => [`${split}/${name}`, value]),
    ...Object.entries(groupMetrics).map(([name, value]) => [`${split}/group_${name}`, value]),
    ...Object.entries(rewardMetrics(groups)).map(([name, value]) => [`${split}/${name}`, value]),
  ]);
}

/** Mean of each name over the records that have it. */
export function averages(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, { total: number; count: number }>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      const sum = sums.get(name) ?? { total: 0, count: 0 };
      sum.total += value;
      sum.count++;
      sums.set(name, sum);
    }
  }
  return Object.fromEntries([...sums].map(([name, { total, count }]) => [name, total / count]));
}
