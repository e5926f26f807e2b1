// The loss where old and new log-probabilities are as far apart as the interface allows: what its formulae say in the
// limit, finite everywhere; and for ordinary values the very bits of the formulae written down plainly.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ImportanceSamplingLevel, type LossConfig, RL_DEFAULTS } from "../config.ts";
import { ALGORITHM_NAMES } from "./algorithms.ts";
import { clipRange, knownLogprobs, type LossInputs, policyLoss } from "./loss.ts";
import { stepDiagnostics } from "./loss-diagnostics.ts";

/** The least log-probability the interface knows. */
const LEAST = -9999;

/** The ratio of a sequence is a mean over its tokens and so much of one more, as ART has it. */
const COUNT_EPSILON = 1e-8;

const LEVELS: readonly ImportanceSamplingLevel[] = ["token", "sequence", "average", "geometric_average"];

interface Token {
  logprob: number;
  old: number;
  sampler: number;
  reference: number;
  advantage: number;
  weight: number;
}

function inputs(tokens: readonly Token[], options: { split: number; precalculated: boolean }): LossInputs {
  const each = (value: (token: Token) => number) => Float64Array.from(tokens, value);
  return {
    logprobs: each(({ logprob }) => logprob),
    oldLogprobs: each(({ old }) => old),
    advantages: each(({ advantage }) => advantage),
    weights: each(({ weight }) => weight),
    sequenceStarts: [0, Math.min(options.split, tokens.length), tokens.length],
    samplerLogprobs: options.precalculated ? each(({ sampler }) => sampler) : null,
    referenceLogprobs: each(({ reference }) => reference),
    klMean: null,
    stepTokens: tokens.length,
  };
}

const config = fc.record<LossConfig>({
  algorithm: fc.constantFrom(...ALGORITHM_NAMES),
  epsilon: fc.option(fc.double({ min: 0, max: 2, noNaN: true })),
  epsilonHigh: fc.option(fc.double({ min: 0, max: 10, noNaN: true })),
  importanceSamplingLevel: fc.constantFrom(...LEVELS),
  maxImportanceWeight: fc.option(fc.double({ min: 0.1, max: 10, noNaN: true })),
  maskProbRatio: fc.boolean(),
  artExactMasking: fc.boolean(),
  tau: fc.option(fc.double({ min: -2, max: 2, noNaN: true })),
  truncatedImportanceSampling: fc.option(fc.double({ min: 0.1, max: 10, noNaN: true })),
  klPenaltyCoef: fc.constantFrom(0, 0.1, 1),
  klPenaltySource: fc.constantFrom("current_learner", "sample"),
});

const tokensFrom = (logprob: fc.Arbitrary<number>) =>
  fc.array(
    fc.record<Token>({
      ...{ logprob, old: fc.oneof(logprob, fc.constant(Number.NaN)), sampler: logprob, reference: logprob },
      advantage: fc.double({ min: -3, max: 3, noNaN: true }),
      weight: fc.double({ min: 0, max: 100, noNaN: true }),
    }),
    { minLength: 1, maxLength: 8 },
  );

const options = fc.record({ split: fc.nat({ max: 8 }), precalculated: fc.boolean() });

describe("log-probabilities at the ends of their range", () => {
  const far = (fields: Partial<LossConfig>, advantage: number) => {
    const given = inputs(
      [LEAST, -1].map((old) => ({ ...{ logprob: -1, old, sampler: -1, reference: -1 }, advantage, weight: 1 })),
      { split: 2, precalculated: false },
    );
    const { loss, gradient } = policyLoss(given, { ...RL_DEFAULTS.loss, ...fields });
    return { loss, gradient: [...gradient].map((value) => value + 0) };
  };

  it("cispo: the clipped weight", () => {
    expect(far({}, 1)).toEqual({ loss: 3, gradient: [-2.5, -0.5] });
    expect(far({}, -1)).toEqual({ loss: -3, gradient: [2.5, 0.5] });
  });

  it("ppo with a positive advantage: no gradient past the clip", () => {
    expect(far({ algorithm: "ppo" }, 1)).toEqual({ loss: -1.1, gradient: [0, -0.5] });
  });

  it("ppo with a negative advantage: a gradient that a float32 can hold, much larger than the others", () => {
    const { gradient } = far({ algorithm: "ppo" }, -1);
    expect(gradient[0]).toBeGreaterThan(1e20);
    expect(gradient[0]).toBeLessThan(1e25);
    expect(gradient[1]).toBe(0.5);
  });

  it("capped: a constant", () => {
    expect(far({ algorithm: "ppo", maxImportanceWeight: 2 }, -1)).toEqual({ loss: 1.5, gradient: [0, 0.5] });
    expect(far({ maxImportanceWeight: 2 }, -1)).toEqual({ loss: -1.5, gradient: [1, 0.5] });
  });

  it.each(ALGORITHM_NAMES)("%s, masked: nothing", (algorithm) => {
    expect(far({ algorithm, maskProbRatio: true }, -1).gradient).toEqual([0, 0.5]);
  });

  it("the geometric mean of a huge and a tiny ratio is computed from their logarithms", () => {
    const ratiosOf = (...differences: number[]) => {
      const tokens = differences.map((difference) => {
        return { logprob: -9000, old: -9000 - difference, sampler: 0, reference: 0, advantage: 1, weight: 1 };
      });
      const geometric = { ...RL_DEFAULTS.loss, importanceSamplingLevel: "geometric_average" as const };
      return [...policyLoss(inputs(tokens, { split: 8, precalculated: false }), geometric).ratio];
    };
    // mean 800: the logarithms are (-800 + 800) / 2 and (2400 + 800) / 2
    const [first, second] = ratiosOf(-800, 2400 + 800 * COUNT_EPSILON);
    expect(first).toBeCloseTo(1, 6);
    expect(second).toBeGreaterThan(1e20);
  });

  it("every number is finite, whatever the configuration", () => {
    const any = fc.oneof(fc.constantFrom(LEAST, 0), fc.double({ min: LEAST, max: 0, noNaN: true }));
    fc.assert(
      fc.property(tokensFrom(any), config, options, (tokens, cfg, chosen) => {
        const given = inputs(tokens, chosen);
        const { loss, gradient, ratio, klToReference } = policyLoss(given, cfg);
        // the trainer's own numbers are float32
        expect([loss, ...gradient].map(Math.fround).every(Number.isFinite)).toBe(true);
        const step = {
          ...{ logprobs: [...given.logprobs], oldLogprobs: [...knownLogprobs(given)], ratios: [...ratio] },
          ...{ advantages: [...given.advantages], entropies: [], klToReference: [...(klToReference ?? [])] },
        };
        expect(Object.entries(stepDiagnostics(step, clipRange(cfg))).filter(([, n]) => !Number.isFinite(n))).toEqual(
          [],
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("past the clip, the distance does not matter", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 2, max: 9998, noNaN: true }),
        fc.constantFrom(...ALGORITHM_NAMES),
        (d, algorithm) => {
          const at = (difference: number) => {
            const token = { logprob: -1, old: -1 - difference, sampler: 0, reference: 0, advantage: 1, weight: 1 };
            const { loss, gradient } = policyLoss(inputs([token], { split: 1, precalculated: false }), {
              ...{ ...RL_DEFAULTS.loss, algorithm },
            });
            return { loss, gradient: [...gradient] };
          };
          expect(at(d)).toEqual(at(2));
        },
      ),
    );
  });
});

describe("ordinary log-probabilities", () => {
  it("give exactly the bits of the plain formulas", () => {
    fc.assert(
      fc.property(tokensFrom(fc.double({ min: -50, max: 0, noNaN: true })), config, options, (tokens, cfg, chosen) => {
        const given = inputs(tokens, chosen);
        const { loss, gradient, ratio } = policyLoss(given, cfg);
        const plain = plainLoss(given, cfg);
        if (cfg.importanceSamplingLevel !== "geometric_average") {
          expect({ loss, gradient: [...gradient], ratio: [...ratio] }).toEqual(plain);
          return;
        }
        // the root of a product and the exponential of a mean differ in their last bits, at a clip's edge in its side
        for (const [t, value] of plain.ratio.entries()) expect(ratio[t]! / value).toBeCloseTo(1, 12);
      }),
      { numRuns: 2000 },
    );
  });
});

/** Every formula where it is used, without a thought for overflow. */
function plainLoss(given: LossInputs, cfg: LossConfig): { loss: number; gradient: number[]; ratio: number[] } {
  const { low, high } = clipRange(cfg);
  const clip = (r: number) => Math.min(Math.max(r, low), high);
  const size = given.logprobs.length;
  const result = { loss: 0, gradient: new Array<number>(size).fill(0), ratio: new Array<number>(size).fill(0) };
  for (const [s, from] of given.sequenceStarts.slice(0, -1).entries()) {
    const indices = Array.from({ length: given.sequenceStarts[s + 1]! - from }, (_, i) => from + i);
    const old = (t: number) => (Number.isNaN(given.oldLogprobs[t]!) ? given.logprobs[t]! : given.oldLogprobs[t]!);
    const d = (t: number) => given.logprobs[t]! - old(t);
    const tokens = indices.length + COUNT_EPSILON;
    const whole = Math.exp(indices.reduce((sum, t) => sum + d(t), 0) / tokens);
    const levels = {
      token: (t: number) => [Math.exp(d(t)), Math.exp(d(t)), 0],
      sequence: () => [whole, 0, whole],
      average: (t: number) => [(Math.exp(d(t)) + whole) / 2, Math.exp(d(t)) / 2, whole / 2],
      geometric_average: (t: number) => {
        const r = Math.sqrt(Math.exp(d(t)) * whole);
        return [r, r / 2, r / 2];
      },
    };
    const k = (t: number) =>
      (cfg.klPenaltySource === "sample" ? old(t) : given.logprobs[t]!) - given.referenceLogprobs![t]!;
    const meanK = given.logprobs.reduce((sum, _, t) => sum + k(t), 0) / Math.max(1, size);
    const through = new Map<number, { own: number; shared: number }>();
    for (const t of indices) {
      const [r, own, shared] = levels[cfg.importanceSamplingLevel](t) as [number, number, number];
      result.ratio[t] = r;
      const capped = cfg.maxImportanceWeight !== null && r > cfg.maxImportanceWeight;
      let used = capped ? cfg.maxImportanceWeight! : r;
      const masked = cfg.maskProbRatio && !(low < used && used < high);
      if (masked && !cfg.artExactMasking) continue;
      if (masked) used = 0;
      let a = given.advantages[t]! - (cfg.tau ?? 0) * d(t);
      if (cfg.klPenaltyCoef > 0) a += cfg.klPenaltyCoef * (meanK - k(t));
      const limit = cfg.truncatedImportanceSampling;
      const rho = given.samplerLogprobs ? Math.exp(old(t) - given.samplerLogprobs[t]!) : used;
      const factor = (limit === null ? 1 : Math.min(rho, limit)) * given.weights[t]! * (1 / given.stepTokens);
      if (cfg.algorithm === "cispo") {
        result.loss += -clip(used) * a * given.logprobs[t]! * factor;
        result.gradient[t] = -clip(used) * a * factor;
      } else if (used * a <= clip(used) * a) {
        result.loss += -used * a * factor;
        if (!capped && !masked) through.set(t, { own: -a * factor * own, shared: -a * factor * shared });
      } else result.loss += -clip(used) * a * factor;
    }
    const shared = indices.reduce((sum, t) => sum + (through.get(t)?.shared ?? 0), 0) / tokens;
    for (const t of indices) result.gradient[t] = result.gradient[t]! + (through.get(t)?.own ?? 0) + shared;
  }
  return result;
}
