import { describe, expect, it } from "vitest";
import { RL_DEFAULTS } from "../config.ts";
import { planRl } from "./gradient-plan.ts";

const rates = (sequences: number, power: number, multiplier = 1) => {
  const config = { ...RL_DEFAULTS, gradAccumulationSequences: 2, learningRatePower: power };
  return planRl(sequences, config, multiplier).map(
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
