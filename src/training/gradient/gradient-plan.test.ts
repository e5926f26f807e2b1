import { describe, expect, it } from "vitest";
import { RL_DEFAULTS, type RlConfig } from "../config.ts";
import { planRl } from "./gradient-plan.ts";

const ofLengths = (...lengths: number[]) => lengths.map((length) => ({ ids: Array.from({ length }, () => 1) }));

const rates = (sequences: number, power: number, multiplier = 1) => {
  const config = { ...RL_DEFAULTS, gradAccumulationSequences: 2, learningRatePower: power };
  return planRl(ofLengths(...Array.from({ length: sequences }, () => 1)), config, multiplier).map(
    ({ learningRate }) => learningRate / RL_DEFAULTS.optimizer.learningRate,
  );
};

describe("learning rates of a plan", () => {
  it("grow with the number of sequences in the step", () => {
    expect(rates(3, 0.5)).toEqual([expect.closeTo(Math.SQRT2), 1]);
    expect(rates(3, -2000)).toEqual([0, 1]);
  });

  it("are rejected when they are not finite, naming the cause", () => {
    expect(() => rates(3, 2000)).toThrow(/Infinity.*num_trajectories_learning_rate_multiplier_power \(2000\)/);
    expect(() => rates(3, 0, Number.NaN)).toThrow(/NaN/);
    expect(rates(0, 2000)).toEqual([]);
  });
});

describe("packs of a plan", () => {
  const steps = (lengths: number[], config: Partial<RlConfig>) =>
    planRl(ofLengths(...lengths), { ...RL_DEFAULTS, ...config }, 1).map(({ from, to }) => lengths.slice(from, to));

  it("take the next sequences while they fit, in order", () => {
    const lengths = [4, 4, 3, 8, 1, 10, 2, 2, 2, 2, 2];
    const packs = [[4, 4], [3], [8, 1], [10], [2, 2, 2, 2, 2]];
    expect(steps(lengths, { packedSequenceLength: 10 })).toEqual(packs);
    expect(steps(lengths, { packedSequenceLength: 1000 })).toEqual([lengths]);
    expect(steps([], { packedSequenceLength: 10 })).toEqual([]);
  });

  it("are what grad_accumulation_sequences counts; without a length each sequence is one", () => {
    const lengths = [4, 4, 3, 8, 1];
    expect(steps(lengths, { packedSequenceLength: 10, gradAccumulationSequences: 2 })).toEqual([
      [4, 4, 3],
      [8, 1],
    ]);
    expect(steps(lengths, { packedSequenceLength: 10, gradAccumulationSequences: "all" })).toEqual([lengths]);
    expect(steps(lengths, {})).toEqual([[4], [4], [3], [8], [1]]);
    expect(steps(lengths, { gradAccumulationSequences: 2 })).toEqual([[4, 4], [3, 8], [1]]);
  });

  it("have the learning rate of their sequences, not of one pack", () => {
    const config = { ...RL_DEFAULTS, packedSequenceLength: 10, learningRatePower: 1 };
    const found = planRl(ofLengths(4, 4, 3), config, 1).map(({ learningRate }) => learningRate);
    expect(found).toEqual([1e-5, 5e-6]);
  });
});
