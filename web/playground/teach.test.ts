import { expect, it } from "vitest";
import {
  firstOfSame,
  groupOf,
  lowered,
  type Places,
  placed,
  raised,
  rewardsByOrder,
  rewardsByStars,
  tied,
  whyUseless,
} from "./teach.ts";

it("puts answers into places, shares them, and takes them out again", () => {
  let places: Places = [];
  for (const answer of [2, 0, 1]) places = raised(places, answer);
  expect(places).toEqual([[2], [0], [1]]);
  expect(placed(places, 1, 0)).toEqual([[1], [2], [0]]);
  expect(raised(places, 1)).toEqual([[2], [1], [0]]);
  expect(raised(places, 2)).toEqual(places);
  expect(lowered(places, 2)).toEqual([[0], [2], [1]]);
  expect(lowered(places, 1)).toEqual([[2], [0]]);
  expect(lowered(places, 9)).toEqual(places);
  const shared = tied(places, 0);
  expect(shared).toEqual([[2, 0], [1]]);
  expect(tied(shared, 0)).toEqual(places);
  expect(raised(shared, 0)).toEqual([[0], [2], [1]]);
  expect(lowered(shared, 2)).toEqual([[0], [2], [1]]);
  expect(tied(places, 2)).toEqual(places);
});

it("turns places and stars into rewards, and leaves out what is not rated", () => {
  expect(rewardsByOrder([[2], [0], [1]], 4)).toEqual([0.5, 0, 1, null]);
  expect(rewardsByOrder([[2, 0], [1]], 3)).toEqual([1, 0, 1]);
  expect(rewardsByOrder([], 2)).toEqual([null, null]);
  expect(rewardsByStars([0, 1, 3, 5])).toEqual([null, 0, 0.5, 1]);
  expect(firstOfSame(["a", "b", "a"])).toEqual([0, 1, 0]);
  expect(whyUseless([1])).toContain("two answers");
  expect(whyUseless([null, null])).toContain("first");
  expect(whyUseless([null, 1])).toContain("one more");
  expect(whyUseless([0.5, null, 0.5])).toContain("alike");
  expect(whyUseless([0, 1])).toBe(null);
});

it("makes a group that a training job takes, with the step that answered", () => {
  const choice = { message: { role: "assistant", content: "x" }, token_ids: [1] };
  const question = { role: "user" as const, content: "q" };
  const rated = [
    { choice, reward: 0.25, version: 3 },
    { choice, reward: null, version: 3 },
    { choice, reward: 1, version: null },
  ];
  expect(groupOf([question], null, rated)).toEqual({
    trajectories: [
      {
        messages_and_choices: [question, choice],
        reward: 0.25,
        initial_policy_version: 3,
        metadata: { source: "playground" },
      },
      { messages_and_choices: [question, choice], reward: 1, metadata: { source: "playground" } },
    ],
  });
});
