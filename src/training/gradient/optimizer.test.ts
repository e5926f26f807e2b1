import { describe, expect, it } from "vitest";
import { type OptimizerConfig, RL_DEFAULTS } from "../config.ts";
import { GroupLog, rewardStdDev } from "../data/group-metrics.ts";
import { rewardSpreadMultiplier, sequenceCountMultiplier } from "./gradient-plan.ts";
import { type LossInputs, policyLoss } from "./loss.ts";
import { type AdamState, adamW, clipFactor, globalNorm, type NamedTensors } from "./optimizer.ts";

const base: OptimizerConfig = { ...RL_DEFAULTS.optimizer, learningRate: 1e-3, maxGradNorm: 1e9 };
const scalar = (value: number): NamedTensors => new Map([["p", Float32Array.of(value)]]);

/** Parameter values and reported norms after each gradient, starting from 1. */
function trace(gradients: number[], config: OptimizerConfig): { values: number[]; norms: number[] } {
  let params = scalar(1);
  let state: AdamState = adamW.init(params);
  const values: number[] = [];
  const norms: number[] = [];
  for (const gradient of gradients) {
    const update = adamW.update(params, scalar(gradient), state, config);
    ({ params, state } = update);
    values.push(params.get("p")![0]!);
    norms.push(update.gradNorm);
  }
  return { values, norms };
}

describe("AdamW", () => {
  it.each([
    ["O01-O02", [0.5, -0.25], {}, [0.99890000002, 0.998533410598]],
    ["O03 clipped", [0.5, -0.25], { maxGradNorm: 0.1 }, [0.9989000001, 0.998852740674]],
    ["O04 no decay", [0.5, -0.25], { weightDecay: 0 }, [0.99900000002, 0.998733300598]],
    ["O05 eps 1e-13", [1e-9], { weightDecay: 0, epsilon: 1e-13 }, [0.99900009999]],
    ["O05 eps 1e-8", [1e-9], { weightDecay: 0 }, [0.999909090909]],
  ] as const)("%s", (_id, gradients, overrides, expected) => {
    const { values, norms } = trace([...gradients], { ...base, ...overrides });
    for (const [i, value] of expected.entries()) expect(Math.abs(values[i]! - value)).toBeLessThan(1e-7);
    for (const [i, gradient] of gradients.entries()) expect(norms[i]).toBeCloseTo(Math.abs(gradient), 8);
  });

  it("clips to a global norm and reports the norm before", () => {
    const gradient = new Map([
      ["a", Float32Array.of(3)],
      ["b", Float32Array.of(4)],
    ]);
    const norm = globalNorm(gradient);
    expect(norm).toBe(5);
    expect(3 * clipFactor(norm, 0.1)).toBeCloseTo(0.059999988, 9);
    expect(4 * clipFactor(norm, 0.1)).toBeCloseTo(0.079999984, 9);
  });

  it("forgets a huge gradient after some steps", () => {
    const config = { ...base, maxGradNorm: 1e30 };
    const { params, state } = adamW.update(scalar(1), scalar(1e25), adamW.init(scalar(1)), config);
    expect(Number.isFinite(state.second.get("p")![0]!)).toBe(true);
    const next = adamW.update(params, scalar(1), state, config);
    expect(next.state.second.get("p")![0]).toBeLessThan(state.second.get("p")![0]!);
  });

  it("does not modify its arguments and rejects other shapes", () => {
    const params = scalar(1);
    const state = adamW.init(params);
    adamW.update(params, scalar(1), state, base);
    expect(params.get("p")![0]).toBe(1);
    expect(state.first.get("p")![0]).toBe(0);
    expect(() => adamW.update(params, new Map(), state, base)).toThrow(/"p"/);
  });
});

describe("O07-O09: a policy of three logits", () => {
  const softmax = (logits: Float32Array) => {
    const exps = [...logits].map(Math.exp);
    const total = exps.reduce((sum, value) => sum + value, 0);
    return exps.map((value) => value / total);
  };
  /** Loss and gradient of tokens 0 (A +1) and 1 (A -1), chained through log-softmax by hand. */
  function step(logits: Float32Array, oldLogprobs: Float64Array, algorithm: string) {
    const probs = softmax(logits);
    const inputs: LossInputs = {
      logprobs: Float64Array.of(Math.log(probs[0]!), Math.log(probs[1]!)),
      oldLogprobs,
      advantages: Float64Array.of(1, -1),
      weights: Float64Array.of(1, 1),
      sequenceStarts: [0, 2],
      samplerLogprobs: null,
      referenceLogprobs: null,
      klMean: null,
      stepTokens: 2,
    };
    const { loss, gradient } = policyLoss(inputs, { ...RL_DEFAULTS.loss, algorithm });
    const dLogits = probs.map((p, j) => [0, 1].reduce((sum, t) => sum + gradient[t]! * ((t === j ? 1 : 0) - p), 0));
    return { loss, probs, dLogits };
  }
  const unknown = Float64Array.of(Number.NaN, Number.NaN);

  it("moves as the reference numbers do", () => {
    const zero = new Float32Array(3);
    const first = step(zero, unknown, "cispo");
    expect(first.loss).toBeCloseTo(0, 12);
    expect(first.dLogits).toEqual([expect.closeTo(-0.5, 9), expect.closeTo(0.5, 9), expect.closeTo(0, 9)]);
    const grads = new Map([["logits", Float32Array.from(first.dLogits)]]);
    expect(globalNorm(grads)).toBeCloseTo(Math.SQRT1_2, 7);

    const params = new Map([["logits", zero]]);
    const config = { ...base, learningRate: 0.1, maxGradNorm: 0.1 };
    const logits = adamW.update(params, grads, adamW.init(params), config).params.get("logits")!;
    expect([...logits]).toEqual([expect.closeTo(0.099999986, 7), expect.closeTo(-0.099999986, 7), 0]);

    const old = Float64Array.of(Math.log(1 / 3), Math.log(1 / 3));
    const second = step(logits, old, "cispo");
    expect(second.probs).toEqual([
      expect.closeTo(0.367165396, 7),
      expect.closeTo(0.30060961, 7),
      expect.closeTo(0.332224994, 7),
    ]);
    expect(-second.probs.reduce((sum, p) => sum + p * Math.log(p), 0)).toBeCloseTo(1.09528727, 7);
    expect(second.loss).toBeCloseTo(0.009844772, 7);
    expect(second.dLogits).toEqual([
      expect.closeTo(-0.514092622, 7),
      expect.closeTo(0.480925378, 7),
      expect.closeTo(0.033167244, 7),
    ]);
    expect(step(logits, old, "ppo").loss).toBeCloseTo(-0.09983368, 7);
  });
});

describe("learning-rate multipliers and reward metrics", () => {
  it("reward spread", () => {
    const history = [0.5, 0.4, 0.45, 0.3].map((rewardStdDev, step) => ({ step, rewardStdDev }));
    expect(rewardSpreadMultiplier(history)).toBeCloseTo(0.666666667, 8);
    expect(rewardSpreadMultiplier(history.slice(0, 1))).toBe(1);
    // the line has reached zero: nothing is left to learn from
    const spent = [1, 0, 0, 0].map((rewardStdDev, step) => ({ step, rewardStdDev }));
    expect(rewardSpreadMultiplier(spent)).toBe(0);
    expect(rewardSpreadMultiplier([0, 1].map((rewardStdDev, step) => ({ step, rewardStdDev })))).toBe(1);
  });

  it("sequence count", () => {
    expect(sequenceCountMultiplier(5, 0.5)).toBeCloseTo(2.236067977, 8);
    expect(sequenceCountMultiplier(5, 0)).toBe(1);
  });

  const group = (rewards: number[], exceptions = 0) => ({
    trajectories: rewards.map((reward) => ({ reward, metrics: { length: 10 * reward } })),
    exceptions,
    metrics: { pass: 1 },
  });

  const splitMetrics = (split: string, groups: ReturnType<typeof group>[]) => {
    const log = new GroupLog();
    for (const { trajectories, ...rest } of groups) {
      for (const trajectory of trajectories) log.addTrajectory(trajectory);
      log.addGroup(rest);
    }
    return log.metrics(split);
  };

  it("reward standard deviation ignores groups of one", () => {
    expect(rewardStdDev([group([1, 0]), group([1, 0, 0, 0]), group([7])])).toBeCloseTo(0.466506351, 8);
  });

  it("names what `log` merges into a checkpoint", () => {
    expect(splitMetrics("val", [group([1, 0], 2)])).toEqual({
      "val/reward": 0.5,
      "val/reward_std_dev": 0.5,
      "val/exception_rate": 0.5,
      "val/length": 5,
      "val/group_pass": 1,
    });
  });

  it("omits reward metrics when there are no rewards", () => {
    expect(splitMetrics("val", [group([], 2)])).toEqual({ "val/exception_rate": 1, "val/group_pass": 1 });
    expect(splitMetrics("val", [group([-3])])).not.toHaveProperty(["val/reward_std_dev"]);
  });
});
