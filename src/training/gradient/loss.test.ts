import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ImportanceSamplingLevel, type LossConfig, RL_DEFAULTS } from "../config.ts";
import { mean } from "../data/advantage.ts";
import { ALGORITHM_NAMES, algorithmNamed } from "./algorithms.ts";
import { klMean, type LossInputs, policyLoss } from "./loss.ts";
import { k3, probabilityCorrelation, type StepTokens, stepDiagnostics } from "./loss-diagnostics.ts";

interface LossVector {
  id: string;
  kind: string;
  new: number[];
  old: (number | null)[];
  adv: number[];
  w?: number[];
  seq?: number[];
  ref?: number[];
  orig?: number[];
  cfg: Record<string, unknown>;
  expected_loss: number;
  expected_dloss_dnew: number[];
  kl_policy_ref?: number;
}

const vectors = (
  JSON.parse(
    readFileSync(new URL("../../../test/fixtures/training-vectors.json", import.meta.url), "utf8"),
  ) as LossVector[]
).filter(({ kind }) => kind === "loss");

/** What the vectors are rounded to. */
const [LOSS_DECIMALS, GRADIENT_DECIMALS] = [9, 10];

/** Cases where a masked token must contribute nothing; the vectors record what ART does instead. */
const ART_MASKING = new Set(["L22", "L25"]);

function config(cfg: Record<string, unknown>): LossConfig {
  return {
    ...RL_DEFAULTS.loss,
    algorithm: cfg.ppo ? "ppo" : "cispo",
    epsilon: (cfg.epsilon as number) ?? null,
    epsilonHigh: (cfg.epsilon_high as number) ?? null,
    importanceSamplingLevel: (cfg.importance_sampling_level as ImportanceSamplingLevel) ?? "token",
    maxImportanceWeight: (cfg.max_negative_advantage_importance_sampling_weight as number) ?? null,
    maskProbRatio: cfg.mask_prob_ratio === true,
    tau: (cfg.alt_k2_tau as number) ?? null,
    truncatedImportanceSampling: (cfg.truncated_importance_sampling as number) ?? null,
    klPenaltyCoef: (cfg.kl_penalty_coef as number) ?? 0,
    klPenaltySource: (cfg.kl_penalty_source as "sample") ?? "current_learner",
  };
}

function inputs(vector: LossVector): LossInputs {
  const sequences = vector.seq ?? vector.new.map(() => 0);
  const starts = sequences.flatMap((id, t) => (t === 0 || id !== sequences[t - 1] ? [t] : []));
  return {
    logprobs: Float64Array.from(vector.new),
    oldLogprobs: Float64Array.from(vector.old, (value) => value ?? Number.NaN),
    advantages: Float64Array.from(vector.adv),
    weights: Float64Array.from(vector.w ?? vector.new.map(() => 1)),
    sequenceStarts: [...starts, sequences.length],
    samplerLogprobs: vector.orig ? Float64Array.from(vector.orig) : null,
    referenceLogprobs: vector.ref ? Float64Array.from(vector.ref) : null,
    klMean: null,
    stepTokens: vector.new.length,
  };
}

describe("policy loss vectors", () => {
  it("has all of them", () => expect(vectors).toHaveLength(48));

  it.each(vectors.map((vector) => [vector.id, vector] as const))("%s", (id, vector) => {
    const cfg = { ...config(vector.cfg), artExactMasking: ART_MASKING.has(id) };
    const { loss, gradient, klToReference } = policyLoss(inputs(vector), cfg);
    expect(Number(loss.toFixed(LOSS_DECIMALS)) + 0).toBe(vector.expected_loss + 0);
    expect([...gradient].map((value) => Number(value.toFixed(GRADIENT_DECIMALS)) + 0)).toEqual(
      vector.expected_dloss_dnew.map((value) => value + 0),
    );
    if (vector.kl_policy_ref !== undefined) expect(mean([...klToReference!])).toBeCloseTo(vector.kl_policy_ref, 9);
  });

  it.each([...ART_MASKING])("%s contributes nothing under true masking", (id) => {
    const vector = vectors.find((candidate) => candidate.id === id)!;
    const { loss, gradient } = policyLoss(inputs(vector), config(vector.cfg));
    expect(loss).toBe(0);
    expect([...gradient]).toEqual(vector.new.map(() => 0));
  });
});

describe("policy loss properties", () => {
  const token = fc.record({
    logprob: fc.double({ min: -6, max: -0.01, noNaN: true }),
    shift: fc.double({ min: -1, max: 1, noNaN: true }),
    advantage: fc.double({ min: -2, max: 2, noNaN: true }),
    weight: fc.double({ min: 0.1, max: 3, noNaN: true }),
  });
  const level = fc.constantFrom<ImportanceSamplingLevel>("token", "sequence", "average", "geometric_average");

  it("has the gradient that finite differences measure, for ppo at every level", () => {
    fc.assert(
      fc.property(fc.array(token, { minLength: 1, maxLength: 6 }), level, (tokens, importanceSamplingLevel) => {
        const cfg: LossConfig = { ...RL_DEFAULTS.loss, algorithm: "ppo", epsilon: 0.9, importanceSamplingLevel };
        const at = (logprobs: Float64Array) =>
          policyLoss(
            {
              logprobs,
              oldLogprobs: Float64Array.from(tokens, ({ logprob, shift }) => logprob + shift),
              advantages: Float64Array.from(tokens, ({ advantage }) => advantage),
              weights: Float64Array.from(tokens, ({ weight }) => weight),
              sequenceStarts: [0, Math.ceil(tokens.length / 2), tokens.length],
              samplerLogprobs: null,
              referenceLogprobs: null,
              klMean: null,
              stepTokens: tokens.length,
            },
            cfg,
          );
        const here = Float64Array.from(tokens, ({ logprob }) => logprob);
        const { gradient } = at(here);
        const h = 1e-6;
        for (let t = 0; t < tokens.length; t++) {
          const up = at(here.map((value, i) => (i === t ? value + h : value))).loss;
          const down = at(here.map((value, i) => (i === t ? value - h : value))).loss;
          const centre = at(here).loss;
          const [right, left] = [(up - centre) / h, (centre - down) / h];
          // at a kink of the clip the one-sided derivatives differ and either is right
          if (Math.abs(right - left) < 1e-3) expect(Math.abs(gradient[t]! - (up - down) / (2 * h))).toBeLessThan(1e-4);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("on policy, every algorithm has the same gradient", () => {
    fc.assert(
      fc.property(fc.array(token, { minLength: 1, maxLength: 6 }), (tokens) => {
        const logprobs = Float64Array.from(tokens, ({ logprob }) => logprob);
        const gradients = ALGORITHM_NAMES.map((algorithm) => [
          ...policyLoss(
            {
              logprobs,
              oldLogprobs: logprobs.map(() => Number.NaN),
              advantages: Float64Array.from(tokens, ({ advantage }) => advantage),
              weights: Float64Array.from(tokens, ({ weight }) => weight),
              sequenceStarts: [0, tokens.length],
              samplerLogprobs: null,
              referenceLogprobs: null,
              klMean: null,
              stepTokens: tokens.length,
            },
            { ...RL_DEFAULTS.loss, algorithm },
          ).gradient,
        ]);
        for (const gradient of gradients) {
          for (const [t, value] of gradient.entries()) expect(value).toBeCloseTo(gradients[0]![t]!, 12);
        }
      }),
    );
  });
});

it.each(["current_learner", "sample"] as const)(
  "gives the same numbers when a step is computed in parts (%s)",
  (source) => {
    const vector = vectors.find(({ id }) => id === "L35")!;
    const cfg = { ...config(vector.cfg), klPenaltyCoef: 0.3, klPenaltySource: source };
    const whole = { ...inputs(vector), referenceLogprobs: Float64Array.of(-1, -2, -3) };
    const part = (from: number, to: number): LossInputs => ({
      logprobs: whole.logprobs.slice(from, to),
      oldLogprobs: whole.oldLogprobs.slice(from, to),
      advantages: whole.advantages.slice(from, to),
      weights: whole.weights.slice(from, to),
      sequenceStarts: [0, to - from],
      samplerLogprobs: null,
      referenceLogprobs: whole.referenceLogprobs.slice(from, to),
      klMean: klMean(whole, cfg),
      stepTokens: 3,
    });
    const parts = [policyLoss(part(0, 2), cfg), policyLoss(part(2, 3), cfg)];
    const { loss, gradient } = policyLoss(whole, cfg);
    expect(parts[0]!.loss + parts[1]!.loss).toBeCloseTo(loss, 12);
    expect([...parts[0]!.gradient, ...parts[1]!.gradient]).toEqual([...gradient]);
  },
);

it("centres the KL penalty over all trainable tokens of the gradient step", () => {
  const vector = vectors.find(({ id }) => id === "L35")!;
  const cfg = { ...config(vector.cfg), klPenaltyCoef: 0.3 };
  const reference = [-1, -2, -3];
  const whole = { ...inputs(vector), referenceLogprobs: Float64Array.from(reference) };
  const distances = vector.new.map((logprob, t) => logprob - reference[t]!);
  const added = distances.map((distance) => 0.3 * (mean(distances) - distance));
  const { advantage } = policyLoss(whole, cfg);
  for (const [t, value] of added.entries()) expect(advantage[t]).toBeCloseTo(vector.adv[t]! + value, 12);
  // zero-sum over the step, not over the first sequence
  expect(added[0]! + added[1]! + added[2]!).toBeCloseTo(0, 12);
  expect(Math.abs(added[0]! + added[1]!)).toBeGreaterThan(0.05);
});

describe("diagnostics", () => {
  it("correlates old and new probabilities", () => {
    expect(probabilityCorrelation([-0.1, -0.5, -1], [-0.2, -0.4, -1.1])).toBeCloseTo(0.959655262, 8);
    expect(probabilityCorrelation([-1], [-2])).toBe(0);
    expect(probabilityCorrelation([-1, -1], [-2, -3])).toBe(0);
  });

  it("has the k3 estimate", () => expect(k3(-1.2, -1)).toBeCloseTo(0.018730753, 8));

  it("is finite, even without tokens", () => {
    const none: StepTokens = {
      ...{ logprobs: [], oldLogprobs: [], ratios: [], advantages: [], entropies: [], klToReference: [] },
    };
    const some: StepTokens = {
      ...{ logprobs: [-1, -2], oldLogprobs: [-1.5, -2], ratios: [1.6, 1], advantages: [1, -1] },
      ...{ entropies: [0.5, 0.7], klToReference: [0.1, 0.3] },
    };
    for (const tokens of [none, some]) {
      const values = Object.values(stepDiagnostics(tokens, { low: 0.8, high: 1.2 }));
      expect(values.every(Number.isFinite)).toBe(true);
    }
    expect(stepDiagnostics(some, { low: 0.8, high: 1.2 })).toMatchObject({
      clip_frac_high: 0.5,
      clip_frac_low: 0,
      entropy: expect.closeTo(0.6, 12),
      kl_policy_ref: expect.closeTo(0.2, 12),
      kl_old_new_k1: -0.25,
    });
  });
});

it("names the known algorithms when asked for another", () => {
  expect(() => algorithmNamed("dpo")).toThrow(/unknown algorithm "dpo"; known: cispo, ppo/);
});
