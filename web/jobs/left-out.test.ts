import { expect, it } from "vitest";
import { reasonsOf } from "./left-out.ts";

it("counts every sentence once and names the first rollout", () => {
  const entry = (group: number, status: string, message: string | null) => ({
    ...{ group, trajectory: group + 1, status, message, reason: null, reward: 0, advantage: 0 },
  });
  const trajectories = [
    entry(0, "trained", null),
    entry(1, "too_long", "9 tokens"),
    entry(2, "zero_advantage", "equal"),
    entry(3, "zero_advantage", "equal"),
  ];
  expect(reasonsOf({ trajectories, totals: {}, usage: null })).toEqual([
    { status: "zero_advantage", message: "equal", count: 2, group: 2, trajectory: 3 },
    { status: "too_long", message: "9 tokens", count: 1, group: 1, trajectory: 2 },
  ]);
  expect(reasonsOf(null)).toEqual([]);
});
