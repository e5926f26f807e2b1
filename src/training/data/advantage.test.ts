import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupAdvantages, hasZeroVariance, tokenSignals } from "./advantage.ts";

const vectors = (
  JSON.parse(readFileSync(new URL("../../../test/fixtures/training-vectors.json", import.meta.url), "utf8")) as {
    id: string;
    kind: string;
    rewards: number[];
    scale_rewards: boolean;
    expected: number[];
  }[]
).filter(({ kind }) => kind === "advantage");

describe("group advantages", () => {
  it("has all vectors", () => expect(vectors).toHaveLength(12));

  it.each(vectors.map((vector) => [vector.id, vector] as const))("%s", (_id, vector) => {
    const advantages = groupAdvantages(vector.rewards, vector.scale_rewards);
    for (const [i, expected] of vector.expected.entries()) expect(advantages[i]).toBeCloseTo(expected, 8);
    if (vector.expected.every((value) => value === 0)) expect(advantages).toEqual(vector.rewards.map(() => 0));
  });

  it("gives exact zeros for equal rewards of any size", () => {
    fc.assert(
      fc.property(fc.double({ min: -1e9, max: 1e9, noNaN: true }), fc.integer({ min: 1, max: 9 }), (reward, size) => {
        expect(groupAdvantages(new Array(size).fill(reward), true)).toEqual(new Array(size).fill(0));
      }),
    );
  });

  it.each([
    [[0.1, 0.2, 0.3], 1],
    [[0.7, 0.8, 0.9], 1],
    [[0.1, 0.3, 0.5], 1],
    [[1e6 + 0.1, 1e6 + 0.2, 1e6 + 0.3], 1],
    // the mean is as inexact as the largest reward, however small the one in the middle is
    [[33333.3, 0, 66666.1, -99999.4], 1],
  ])("gives exactly 0 to the reward of %j that is the mean up to rounding", (rewards, at) => {
    for (const scale of [true, false]) {
      const advantages = groupAdvantages(rewards, scale);
      expect(advantages[at]).toBe(0);
      for (const [i, advantage] of advantages.entries()) if (i !== at) expect(advantage).not.toBe(0);
    }
  });

  it("property: a reward well away from the mean keeps its advantage", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 2, maxLength: 50 }), (tenths) => {
        const sum = tenths.reduce((total, value) => total + value, 0);
        const advantages = groupAdvantages(
          tenths.map((value) => value / 10),
          true,
        );
        expect(advantages.map(Math.sign)).toEqual(tenths.map((value) => Math.sign(value * tenths.length - sum)));
      }),
    );
  });

  it("tells rounding noise from a signal", () => {
    expect(hasZeroVariance([0.1 + 0.2, 0.3])).toBe(true);
    expect(hasZeroVariance([0, 1e-7])).toBe(false);
  });
});

describe("weights, balance and normalisation over a job", () => {
  const pair = [
    { advantage: 0.999998, trainableTokens: 2 },
    { advantage: -0.999998, trainableTokens: 4 },
  ];
  const mixed = [...groupAdvantages([1, 0], true), ...groupAdvantages([1, 0, 0], true)].map((advantage, i) => ({
    advantage,
    trainableTokens: [2, 4, 1, 1, 1][i]!,
  }));
  const twoGroups = (scale: boolean) =>
    [...groupAdvantages([1, 0], scale), ...groupAdvantages([10, 0], scale)].map((advantage) => ({
      advantage,
      trainableTokens: 1,
    }));

  it.each([
    ["no balance", pair, 0, [1.5, 0.75], [1, -1]],
    ["negative advantages at half", pair, 0.5, [1.5, 0.75], [1.333333, -0.666667]],
    ["negative advantages at nothing", pair, 1, [1.5, 0.75], [2, 0]],
    ["positive advantages at half", pair, -0.5, [1.5, 0.75], [0.666667, -1.333333]],
    ["positive advantages at nothing", pair, -1, [1.5, 0.75], [0, -2]],
    ["two groups, rewards not scaled", twoGroups(false), 0, [1, 1, 1, 1], [0.181818, -0.181818, 1.818182, -1.818182]],
    ["two groups, rewards scaled", twoGroups(true), 0, [1, 1, 1, 1], [1, -1, 1, -1]],
    [
      "four tokens against one",
      [
        { advantage: 1, trainableTokens: 4 },
        { advantage: -1, trainableTokens: 1 },
      ],
      0,
      [0.625, 2.5],
      [1, -1],
    ],
    [
      "groups of two and of three, scaled",
      mixed,
      0,
      [0.9, 0.45, 1.8, 1.8, 1.8],
      [1.035534, -1.035534, 1.464466, -0.732233, -0.732233],
    ],
  ] as const)("%s", (_id, trajectories, balance, weights, advantages) => {
    const signals = tokenSignals(trajectories, balance);
    for (const [i, weight] of weights.entries()) expect(signals[i]!.weight).toBeCloseTo(weight, 5);
    for (const [i, advantage] of advantages.entries()) expect(signals[i]!.advantage).toBeCloseTo(advantage, 5);
  });

  it("has mean weight 1, equal total weight per trajectory and mean |A| w of 1", () => {
    const trajectory = fc.record({
      advantage: fc.double({ min: -3, max: 3, noNaN: true }).filter((value) => Math.abs(value) > 1e-3),
      trainableTokens: fc.integer({ min: 1, max: 500 }),
    });
    fc.assert(
      fc.property(fc.array(trajectory, { minLength: 1, maxLength: 20 }), (trajectories) => {
        const signals = tokenSignals(trajectories, 0);
        const tokens = trajectories.reduce((sum, { trainableTokens }) => sum + trainableTokens, 0);
        const weighted = (value: (i: number) => number) =>
          trajectories.reduce((sum, { trainableTokens }, i) => sum + trainableTokens * value(i), 0) / tokens;
        expect(weighted((i) => signals[i]!.weight)).toBeCloseTo(1, 9);
        expect(weighted((i) => Math.abs(signals[i]!.advantage) * signals[i]!.weight)).toBeCloseTo(1, 9);
        const totals = trajectories.map(({ trainableTokens }, i) => trainableTokens * signals[i]!.weight);
        for (const total of totals) expect(total / totals[0]!).toBeCloseTo(1, 5);
      }),
    );
  });

  it("gives zeros, not NaN, when nothing is trainable", () => {
    expect(tokenSignals([{ advantage: 1, trainableTokens: 0 }], 0)).toEqual([{ advantage: 0, weight: 0 }]);
    expect(tokenSignals([{ advantage: 0, trainableTokens: 3 }], 0)[0]!.advantage).toBe(0);
  });
});
