// Metrics of submitted groups, before anything is tokenised. `log` and every job report them, under the names that
// clients already chart.

import { hasZeroVariance, mean, populationStdDev } from "./advantage.ts";

/** The part of a group that the metrics need. */
export interface ScoredGroup {
  trajectories: readonly { reward: number }[];
  /** Number of failed rollouts. They are counted but never trained. */
  exceptions: number;
}

/** Mean over the groups with more than one trajectory of the population standard deviation of their rewards. */
export function rewardStdDev(groups: readonly ScoredGroup[]): number {
  const several = groups.filter(({ trajectories }) => trajectories.length > 1);
  return mean(several.map(({ trajectories }) => populationStdDev(trajectories.map(({ reward }) => reward))));
}

/** Without rewards the reward metrics are missing: clients keep the best step, and 0 might be the best. */
export function rewardMetrics(groups: readonly ScoredGroup[]): Record<string, number> {
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  const exceptions = groups.reduce((sum, group) => sum + group.exceptions, 0);
  return {
    ...(rewards.length > 0 ? { reward: mean(rewards) } : {}),
    ...(groups.some(({ trajectories }) => trajectories.length > 1) ? { reward_std_dev: rewardStdDev(groups) } : {}),
    exception_rate: exceptions / Math.max(1, rewards.length + exceptions),
  };
}

/** How many groups and trajectories were submitted, and how many groups can be learned from. */
export function groupCounts(groups: readonly ScoredGroup[]): Record<string, number> {
  return {
    num_groups_submitted: groups.length,
    num_groups_trainable: groups.filter(
      ({ trajectories }) => trajectories.length > 1 && !hasZeroVariance(trajectories.map(({ reward }) => reward)),
    ).length,
    num_trajectories: groups.reduce((sum, group) => sum + group.trajectories.length + group.exceptions, 0),
  };
}

/** Collects the metrics of groups for `log`, part by part: as objects they may be many times the size of the body. */
export class GroupLog {
  readonly #groups: ScoredGroup[] = [];
  #rewards: { reward: number }[] = [];
  readonly #ofTrajectories = new Averages();
  readonly #ofGroups = new Averages();

  /** Number of different names so far. */
  get names(): number {
    return this.#ofTrajectories.names + this.#ofGroups.names;
  }

  addTrajectory({ reward, metrics }: { reward: number; metrics: Readonly<Record<string, number>> }): void {
    this.#rewards.push({ reward });
    this.#ofTrajectories.add(metrics);
  }

  /** Ends the group of the trajectories added since the last call. */
  addGroup({ exceptions, metrics }: { exceptions: number; metrics: Readonly<Record<string, number>> }): void {
    this.#groups.push({ trajectories: this.#rewards, exceptions });
    this.#rewards = [];
    this.#ofGroups.add(metrics);
  }

  /** Everything to merge into a checkpoint: `<split>/reward`, each trajectory metric and each group metric. */
  metrics(split: string): Record<string, number> {
    return Object.fromEntries([
      ...Object.entries(this.#ofTrajectories.means()).map(([name, value]) => [`${split}/${name}`, value]),
      ...Object.entries(this.#ofGroups.means()).map(([name, value]) => [`${split}/group_${name}`, value]),
      ...Object.entries(rewardMetrics(this.#groups)).map(([name, value]) => [`${split}/${name}`, value]),
    ]);
  }
}

/** The mean of each metric over the records that have it. */
export function averages(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const all = new Averages();
  for (const record of records) all.add(record);
  return all.means();
}

class Averages {
  readonly #sums = new Map<string, { total: number; count: number }>();

  get names(): number {
    return this.#sums.size;
  }

  add(record: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(record)) {
      const sum = this.#sums.get(name) ?? { total: 0, count: 0 };
      sum.total += value;
      sum.count++;
      this.#sums.set(name, sum);
    }
  }

  means(): Record<string, number> {
    return Object.fromEntries([...this.#sums].map(([name, { total, count }]) => [name, total / count]));
  }
}
