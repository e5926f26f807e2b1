// Numbers about the submitted groups themselves, before any tokenising: what `log` and every job report.
// Names are the ones clients of such services already chart.

import { hasZeroVariance, mean, populationStdDev } from "./advantage.ts";

/** The part of a group these numbers need. */
export interface ScoredGroup {
  trajectories: readonly { reward: number }[];
  /** Failed rollouts: counted, never trained. */
  exceptions: number;
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

/** What `log` is told of groups, taken in part by part: the metrics of a body may be many times its size as objects. */
export class GroupLog {
  readonly #groups: ScoredGroup[] = [];
  #rewards: { reward: number }[] = [];
  readonly #ofTrajectories = new Averages();
  readonly #ofGroups = new Averages();

  /** Different names so far. */
  get names(): number {
    return this.#ofTrajectories.names + this.#ofGroups.names;
  }

  addTrajectory({ reward, metrics }: { reward: number; metrics: Readonly<Record<string, number>> }): void {
    this.#rewards.push({ reward });
    this.#ofTrajectories.add(metrics);
  }

  /** The group of the trajectories added since the last one. */
  addGroup({ exceptions, metrics }: { exceptions: number; metrics: Readonly<Record<string, number>> }): void {
    this.#groups.push({ trajectories: this.#rewards, exceptions });
    this.#rewards = [];
    this.#ofGroups.add(metrics);
  }

  /** Everything that is merged into a checkpoint: `<split>/reward`, each trajectory metric, each group metric. */
  metrics(split: string): Record<string, number> {
    return Object.fromEntries([
      ...Object.entries(this.#ofTrajectories.means()).map(([name, value]) => [`${split}/${name}`, value]),
      ...Object.entries(this.#ofGroups.means()).map(([name, value]) => [`${split}/group_${name}`, value]),
      ...Object.entries(rewardMetrics(this.#groups)).map(([name, value]) => [`${split}/${name}`, value]),
    ]);
  }
}

/** Mean of each name over the records that have it. */
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
