import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  defaults,
  referenceEdits,
  referenceLogprobs,
  referenceMask,
  referenceOrder,
  referenceTruncate,
} from "../../test/reference/sampling.ts";
import { InvalidLogitsError, NoLegalTokenError } from "./errors.ts";
import { SequenceSampler } from "./sampler.ts";
import type { SamplingParams } from "./sampling-params.ts";
import { tokenSet } from "./token-set.ts";

const vocab = 70;
const id = fc.integer({ min: 0, max: vocab - 1 });
const logits = fc
  .array(fc.integer({ min: -8192, max: 8192 }), { minLength: vocab, maxLength: vocab })
  .map((steps) => Float32Array.from(steps, (step) => step / 1024));
const editing = fc.record({
  allowedTokenIds: fc.option(fc.array(id, { minLength: 1, maxLength: 60 })),
  badWords: fc.array(fc.array(id, { minLength: 1, maxLength: 2 }), { maxLength: 4 }),
  minTokens: fc.integer({ min: 0, max: 6 }),
  minTokensMask: fc.array(id, { maxLength: 3 }),
  logitBias: fc.uniqueArray(fc.tuple(id, fc.integer({ min: -100, max: 100 })), { selector: ([key]) => key }),
  repetitionPenalty: fc.constantFrom(1, 1.3),
  frequencyPenalty: fc.constantFrom(0, 0.7),
  presencePenalty: fc.constantFrom(0, 1.5),
});
const truncating = fc.record({
  temperature: fc.constantFrom(0, 0.01, 0.7, 1, 2),
  topK: fc.constantFrom(0, 1, 5, 200),
  topP: fc.constantFrom(1, 0.9, 0.3),
  minP: fc.constantFrom(0, 0.1),
});
const steps = fc.array(fc.tuple(logits, fc.option(fc.uniqueArray(id, { minLength: 1 }))), {
  minLength: 1,
  maxLength: 6,
});

function rowOf(step: number): Float32Array {
  return Float32Array.from({ length: vocab }, (_, i) => Math.sin(i * 12.9898 + step * 78.233) * 3);
}

function run(params: Partial<SamplingParams>, choice: number, count: number): number[] {
  const sampler = new SequenceSampler({ ...defaults, ...params }, choice, [], vocab);
  for (let step = 0; step < count; step++) sampler.sample(rowOf(step), null);
  return [...sampler.outputTokens];
}

describe("SequenceSampler", () => {
  it("chooses only tokens that the whole pipeline leaves, and reports raw log-probabilities", () => {
    let legalChoices = 0;
    fc.assert(
      fc.property(steps, editing, truncating, fc.array(id), (rows, edits, truncation, prompt) => {
        const params = { ...defaults, ...edits, ...truncation, logprobs: 3 };
        const sampler = new SequenceSampler(params, 0, prompt, vocab);
        for (const [row, legal] of rows) {
          const output = [...sampler.outputTokens];
          const raw = referenceMask(row, legal === null ? null : new Set(legal));
          const values = referenceEdits(raw, params, prompt, output);
          const choose = () => sampler.sample(row, legal === null ? null : tokenSet(legal, vocab));
          if (Math.max(...values) === Number.NEGATIVE_INFINITY) {
            expect(choose).toThrow(NoLegalTokenError);
            expect(sampler.outputTokens).toEqual(output);
            return;
          }
          const chosen = choose();
          expect(sampler.outputTokens).toEqual([...output, chosen.id]);
          if (params.temperature === 0) {
            expect(values[chosen.id]!).toBeGreaterThan(Math.max(...values) - 1e-4);
          } else {
            const { probabilities, doubtful } = referenceTruncate(values, params);
            expect(probabilities[chosen.id]! > 0 || doubtful.size > 0).toBe(true);
          }
          const expected = referenceLogprobs(raw);
          expect(chosen.logprobs!.logprob).toBeCloseTo(expected[chosen.id]!, 5);
          expect(chosen.logprobs!.rank).toBe(raw.filter((value) => value >= raw[chosen.id]!).length);
          expect(chosen.logprobs!.topIds).toEqual(referenceOrder(raw).slice(0, 3));
          legalChoices++;
        }
      }),
      { numRuns: 400 },
    );
    expect(legalChoices).toBeGreaterThan(300);
  });

  it("is greedy at temperature 0 with any seed and truncation, and picks the lowest of equal ids", () => {
    const row = Float32Array.of(1, 7, 3, 7);
    for (const seed of [1n, 2n, null]) {
      const greedy = new SequenceSampler({ ...defaults, temperature: 0, topP: 0.1, topK: 1, seed }, 0, [], 4);
      expect(greedy.sample(row, null)).toEqual({ id: 1, logprobs: null });
      const biased: readonly [number, number][] = [[2, 100]];
      const pushed = new SequenceSampler({ ...defaults, temperature: 0, logitBias: biased, seed }, 0, [], 4);
      expect(pushed.sample(row, null).id).toBe(2);
    }
  });

  it("repeats itself with the same seed, alone or among others", () => {
    const alone = run({ seed: 42n }, 0, 30);
    expect(run({ seed: 42n }, 0, 30)).toEqual(alone);
    expect(run({ seed: 43n }, 0, 30)).not.toEqual(alone);

    const [a, b] = [42n, 7n].map((seed) => new SequenceSampler({ ...defaults, seed, logprobs: 2 }, 0, [], vocab));
    for (let step = 0; step < 30; step++) {
      b!.sample(rowOf(step + 100), null);
      a!.sample(rowOf(step), null);
      b!.sample(rowOf(step + 200), null);
    }
    expect(a!.outputTokens).toEqual(alone);
  });

  it("uses seed + i for choice i, wrapping at 64 bits", () => {
    expect(run({ seed: 100n }, 3, 20)).toEqual(run({ seed: 103n }, 0, 20));
    expect(run({ seed: 100n }, 3, 20)).not.toEqual(run({ seed: 100n }, 2, 20));
    expect(run({ seed: 2n ** 63n - 1n }, 1, 20)).toEqual(run({ seed: -(2n ** 63n) }, 0, 20));
  });

  it("differs from choice to choice without a seed", () => {
    const outputs = Array.from({ length: 5 }, (_, choice) => run({ seed: null }, choice, 30).join());
    expect(new Set(outputs).size).toBe(5);
  });

  it("only reads the logits, and ignores those beyond the vocabulary", () => {
    const params = { ...defaults, logprobs: 2, repetitionPenalty: 2, allowedTokenIds: [1, 2] };
    const row = Float32Array.of(5, 4, 3, 1000, Number.NaN);
    const before = [...row];
    const sampler = new SequenceSampler(params, 0, [1], 3);
    const chosen = sampler.sample(row, Int32Array.of(0b111));
    expect([...row]).toEqual(before);
    expect(chosen.logprobs!.topIds).toEqual([0, 1]);
    expect(() => sampler.sample(new Float32Array(2), null)).toThrow(RangeError);
  });

  it("renormalises log-probabilities over the tokens that the grammar allows", () => {
    const sampler = new SequenceSampler({ ...defaults, temperature: 0, logprobs: 2 }, 0, [], 4);
    const { id: chosen, logprobs } = sampler.sample(Float32Array.of(9, 1, 1, 9), Int32Array.of(0b0110));
    expect(chosen).toBe(1);
    expect(logprobs!.logprob).toBeCloseTo(-Math.LN2, 6);
    expect(logprobs).toMatchObject({ rank: 2, topIds: [1, 2] });
  });

  it("names contradictions and broken models, and continues unchanged", () => {
    const row = Float32Array.of(1, 2);
    const sampler = new SequenceSampler({ ...defaults, allowedTokenIds: [0], badWords: [[0]] }, 0, [], 2);
    expect(() => sampler.sample(row, null)).toThrow(NoLegalTokenError);
    const free = new SequenceSampler({ ...defaults, temperature: 0 }, 0, [], 2);
    expect(() => free.sample(row, Int32Array.of(0))).toThrow(/output position 0/);
    expect(() => free.sample(Float32Array.of(Number.NaN, 1), null)).toThrow(InvalidLogitsError);
    expect(() => free.sample(Float32Array.of(Number.POSITIVE_INFINITY, 1), null)).toThrow(InvalidLogitsError);
    expect(() => free.sample(new Float32Array(2).fill(Number.NEGATIVE_INFINITY), null)).toThrow(InvalidLogitsError);
    expect(free.outputTokens).toEqual([]);
    expect(free.sample(row, null).id).toBe(1);
  });
});
