import { expect, it } from "vitest";
import { compareOutcomes } from "./again.ts";

const outcome = (group: number, trajectory: number, status: string, advantage: number) => ({
  ...{ group, trajectory, status, advantage, message: status === "trained" ? null : "why" },
});

it("tells which rollouts have another verdict, and how many another advantage", () => {
  const before = {
    trajectories: [outcome(0, 0, "trained", 1), outcome(0, 1, "trained", -1), outcome(1, 0, "stale", 0)],
  };
  const now = { trajectories: [outcome(0, 0, "trained", 2), outcome(0, 1, "stale", 0), outcome(1, 0, "stale", 0)] };
  expect(compareOutcomes(before, now)).toEqual({
    ...{ before: { trained: 2, stale: 1 }, now: { trained: 1, stale: 2 }, otherAdvantages: 1 },
    changes: [{ group: 0, trajectory: 1, before: "trained", now: "stale", message: "why" }],
  });
});

it("takes examples of supervised jobs, and a job that has no report", () => {
  const examples = [{ example: 3, status: "trained", message: null }];
  const shorter = { examples: [{ example: 3, status: "too_long", message: "why" }] };
  expect(compareOutcomes({ examples }, shorter).changes).toEqual([
    { group: 3, trajectory: 0, before: "trained", now: "too_long", message: "why" },
  ]);
  expect(compareOutcomes(null, { examples })).toMatchObject({ before: {}, now: { trained: 1 }, changes: [] });
});
