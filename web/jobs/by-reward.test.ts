import { expect, it } from "vitest";
import { byReward } from "./by-reward.ts";
import type { RolloutRow } from "./records.ts";

it("puts the best rollout first, equal ones in order, and those without a reward last", () => {
  const rollouts = [0, null, 1, 0.5, 1].map((reward, trajectory) => ({ trajectory, reward }) as RolloutRow);
  expect(byReward(rollouts).map(({ trajectory }) => trajectory)).toEqual([2, 4, 3, 0, 1]);
});
