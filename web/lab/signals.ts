// Advantages and weights of every rollout of a job, from its rewards: the trainer's own arithmetic over the job's record.
import { groupAdvantages, tokenSignals } from "../../src/training/data/advantage.ts";
import type { GroupRow } from "../jobs/records.ts";
import type { Config } from "./knobs.ts";

/** Rewards that were changed, by place: "2.5" is rollout 5 of group 2, both counted from 0. */
export type Rewards = Readonly<Record<string, number>>;
/** Trained tokens of rollouts whose record has none, by place. */
export type TokenCounts = ReadonlyMap<string, number>;

export interface Signal {
  group: number;
  trajectory: number;
  reward: number;
  /** As normalised over the job; 0 if it would not be trained. */
  advantage: number;
  weight: number;
  isTrained: boolean;
  trainableTokens: number;
}

export interface Signals {
  of: ReadonlyMap<string, Signal>;
  /** Trained tokens of the whole job. */
  tokens: number;
  /** Rollouts that would be trained now, but whose tokens the record does not have. */
  uncounted: number;
  /** The same rollouts are trained as in the job. */
  isSameSet: boolean;
}

export function placeOf(group: number, trajectory: number): string {
  return `${group}.${trajectory}`;
}

export function signalsOf(groups: readonly GroupRow[], config: Config, rewards: Rewards, counts: TokenCounts): Signals {
  let [uncounted, isSameSet] = [0, true];
  const all = groups.flatMap(({ group, trajectories }) => {
    const given = trajectories.map(({ trajectory, reward }) => rewards[placeOf(group, trajectory)] ?? reward ?? 0);
    const advantages = groupAdvantages(given, config.scale_rewards === true);
    return trajectories.map(({ trajectory, status, trainable_tokens }, i) => {
      // What was left out for another reason stays out, whatever its reward.
      const isTrained = (status === "trained" || status === "zero_advantage") && advantages[i] !== 0;
      const trainableTokens = trainable_tokens || counts.get(placeOf(group, trajectory)) || 0;
      if (isTrained && trainableTokens === 0) uncounted += 1;
      if (isTrained !== (status === "trained")) isSameSet = false;
      return { group, trajectory, reward: given[i]!, raw: advantages[i]!, isTrained, trainableTokens };
    });
  });
  const trained = all.filter(({ isTrained }) => isTrained);
  const signals = tokenSignals(
    trained.map(({ raw, trainableTokens }) => ({ advantage: raw, trainableTokens })),
    Number(config.advantage_balance ?? 0),
  );
  const signalOf = new Map(trained.map((one, i) => [one, signals[i]!]));
  return {
    of: new Map(
      all.map((one) => {
        const { advantage, weight } = signalOf.get(one) ?? { advantage: 0, weight: 0 };
        const { group, trajectory, reward, isTrained, trainableTokens } = one;
        return [
          placeOf(group, trajectory),
          { group, trajectory, reward, advantage, weight, isTrained, trainableTokens },
        ];
      }),
    ),
    tokens: trained.reduce((sum, { trainableTokens }) => sum + trainableTokens, 0),
    uncounted,
    isSameSet,
  };
}
