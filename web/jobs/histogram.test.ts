import { expect, it } from "vitest";
import { agesOf, barHeight, histogram, points, rangeOf, scale } from "./histogram.ts";

it("counts every value once, the largest in the last bin", () => {
  const bins = histogram([0, 0.1, 0.5, 0.99, 1], 4);
  expect(bins.map(({ count }) => count)).toEqual([2, 0, 1, 2]);
  expect([bins[0]!.from, bins[3]!.to]).toEqual([0, 1]);
  expect(histogram([2, 2, 2])).toEqual([{ from: 2, to: 2, count: 3 }]);
  expect(histogram([])).toEqual([]);
});

it("takes more values than a call takes arguments", () => {
  const many = Array.from({ length: 300_000 }, (_, i) => i % 7);
  expect(rangeOf(many)).toEqual({ low: 0, high: 6 });
  expect(histogram(many, 7).reduce((sum, { count }) => sum + count, 0)).toBe(300_000);
});

it("draws rollouts that have a reward and a length", () => {
  const row = { trajectory: 0, advantage: 0, trainable_tokens: 1, initial_policy_version: null };
  const trajectories = [
    { ...row, reward: 1, tokens: 10, status: "trained" },
    { ...row, reward: 0, tokens: 30, status: "too_long" },
    { ...row, reward: 0, tokens: 0, status: "zero_advantage" },
    { ...row, reward: null, tokens: 5, status: "trained" },
  ];
  expect(points([{ trajectories }])).toEqual([
    { length: 10, reward: 1, isTrained: true },
    { length: 30, reward: 0, isTrained: false },
  ]);
});

it("scales, and puts one value in the middle", () => {
  expect([2, 4, 6].map(scale([2, 6]))).toEqual([0, 0.5, 1]);
  expect(scale([3])(3)).toBe(0.5);
  expect([barHeight(0.5, 0.2, 1), barHeight(-1, -1, 1), barHeight(0, 0, 0)]).toEqual([0.5, 0, 0]);
});

it("counts how many steps ago rollouts began", () => {
  const row = { trajectory: 0, advantage: 0, trainable_tokens: 1, reward: 1, tokens: 1, status: "trained" };
  const trajectories = [14, 12, null, 14].map((initial_policy_version) => ({ ...row, initial_policy_version }));
  expect(agesOf([{ trajectories }], 14)).toEqual([
    { steps: 0, count: 2 },
    { steps: 2, count: 1 },
  ]);
});
