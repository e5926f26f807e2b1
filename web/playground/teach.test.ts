import { expect, it } from "vitest";
import { groupOf, moved, rewardsByOrder, rewardsByStars, whyUseless } from "./teach.ts";

it("moves answers up and down and keeps them all", () => {
  expect(moved([0, 1, 2, 3], 3, 0)).toEqual([3, 0, 1, 2]);
  expect(moved([0, 1, 2, 3], 0, 2)).toEqual([1, 2, 0, 3]);
  expect(moved([0, 1], 0, 9)).toEqual([1, 0]);
  expect(moved([0, 1], 1, -1)).toEqual([1, 0]);
});

it("turns an order and stars into rewards", () => {
  expect(rewardsByOrder([2, 0, 1])).toEqual([0.5, 0, 1]);
  expect(rewardsByOrder([0])).toEqual([1]);
  expect(rewardsByStars([0, 1, 3, 5])).toEqual([0, 0, 0.5, 1]);
  expect(whyUseless([1])).toContain("two answers");
  expect(whyUseless([0.5, 0.5])).toContain("alike");
  expect(whyUseless([0, 1])).toBe(null);
});

it("makes a group that a training job takes", () => {
  const choice = { message: { role: "assistant", content: "x" }, token_ids: [1] };
  expect(groupOf([{ role: "user", content: "q" }], [choice], [0.25])).toEqual({
    trajectories: [
      {
        messages_and_choices: [{ role: "user", content: "q" }, choice],
        reward: 0.25,
        metadata: { source: "playground" },
      },
    ],
  });
});
