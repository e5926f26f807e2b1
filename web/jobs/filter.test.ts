import { expect, it } from "vitest";
import { bound, filterFrom, filterGroups, queryOf } from "./filter.ts";
import type { GroupRow } from "./records.ts";
import type { Said } from "./use-said.ts";

function group(index: number, task: string, rollouts: [status: string, reward: number | null][]): GroupRow {
  return {
    ...{ group: index, task, rewards: [], mean: null, spread: null, verdicts: {}, exceptions: [] },
    trajectories: rollouts.map(([status, reward], trajectory) => ({
      ...{
        trajectory,
        reward,
        status,
        advantage: null,
        tokens: trajectory * 100,
        trainable_tokens: null,
        initial_policy_version: null,
      },
    })),
  };
}

const GROUPS = [
  group(0, "What is 1 + 1?", [
    ["trained", 0.2],
    ["too_long", 0.9],
  ]),
  { ...group(1, "Name a fish.", [["zero_advantage", 1]]), exceptions: [{ type: "TimeoutError", message: "no reply" }] },
  group(2, "Empty", []),
];
const shown = (query: string, said: Said = new Map()) =>
  filterGroups(GROUPS, filterFrom(query), said).map((one) => one.group);

it("keeps groups with the text in their task or in an exception", () => {
  expect(shown("")).toEqual([0, 1, 2]);
  expect(shown("text=what+is")).toEqual([0]);
  expect(shown("text=timeout")).toEqual([1]);
  expect(shown("text=none")).toEqual([]);
});

it("keeps groups in which a rollout says the text and fits", () => {
  const said = new Map([[0, [1]]]);
  expect(shown("text=hello", said)).toEqual([0]);
  expect(shown("text=fish", said)).toEqual([0, 1]);
  expect(shown("text=hello&verdict=too_long", said)).toEqual([0]);
  expect(shown("text=hello&verdict=trained", said)).toEqual([]);
  expect(shown("text=what+is&verdict=trained", said)).toEqual([0]);
});

it("wants one rollout with the verdict, the reward and the length", () => {
  expect(shown("verdict=trained")).toEqual([0]);
  expect(shown("min=0.9")).toEqual([0, 1]);
  expect(shown("max=0.2")).toEqual([0]);
  expect(shown("verdict=trained&min=0.5")).toEqual([]);
  expect(shown("verdict=too_long&min=0.5")).toEqual([0]);
  expect(shown("shortest=100")).toEqual([0]);
  expect(shown("longest=99")).toEqual([0, 1]);
  expect(shown("longest=99&verdict=too_long")).toEqual([]);
});

it("writes what it reads, and nothing for an empty filter", () => {
  const query = "verdict=trained&min=-1.5&max=0&shortest=8&longest=90&text=a+%26+b";
  expect(queryOf(filterFrom(query))).toBe(query);
  expect(queryOf(filterFrom("min=x&other=1"))).toBe("");
  expect([bound("0"), bound(" "), bound("1e-3"), bound("−")]).toEqual([0, null, 0.001, null]);
});
