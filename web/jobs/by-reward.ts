// Rollouts of a group in the order of their rewards.
import type { RolloutRow } from "./records.ts";

/** The best first; those without a reward last. Equal ones stay in order. */
export function byReward(rollouts: readonly RolloutRow[]): RolloutRow[] {
  const worth = ({ reward }: RolloutRow) => reward ?? Number.NEGATIVE_INFINITY;
  return [...rollouts].sort((one, other) => (worth(other) > worth(one) ? 1 : worth(other) < worth(one) ? -1 : 0));
}
