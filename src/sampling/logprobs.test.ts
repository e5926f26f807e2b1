import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { referenceLogprobs, referenceOrder } from "../../test/reference/sampling.ts";
import { InvalidLogitsError } from "./errors.ts";
import { promptTokenLogprobs } from "./logprobs.ts";

const logit = fc.oneof(
  { weight: 5, arbitrary: fc.float({ noNaN: true, min: -30, max: 30 }) },
  { weight: 2, arbitrary: fc.integer({ min: -2, max: 2 }) },
  { weight: 1, arbitrary: fc.constant(Number.NEGATIVE_INFINITY) },
);
const rows = fc
  .array(logit, { minLength: 1, maxLength: 200, size: "max" })
  .map((logits) => Float32Array.from(logits))
  .filter((logits) => logits.some((value) => value > Number.NEGATIVE_INFINITY));

describe("promptTokenLogprobs", () => {
  it("agrees with the reference: value, rank and best-first list", () => {
    fc.assert(
      fc.property(rows, fc.nat(), fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant(-1)), (row, anyId, k) => {
        const id = anyId % row.length;
        const found = promptTokenLogprobs(row, id, k);
        const expected = referenceLogprobs([...row]);
        const close = (actual: number, wanted: number) =>
          actual === wanted || Math.abs(actual - wanted) < 2e-7 * (1 + Math.abs(wanted));
        expect(close(found.logprob, expected[id]!)).toBe(true);
        expect(found.logprob).toBeLessThanOrEqual(0);
        expect(found.rank).toBe(row.filter((value) => value >= row[id]!).length);
        expect(found.topIds).toEqual(referenceOrder([...row]).slice(0, k === -1 ? row.length : k));
        expect(found.topLogprobs.length).toBe(found.topIds.length);
        found.topIds.forEach((top, i) => void expect(close(found.topLogprobs[i]!, expected[top]!)).toBe(true));
      }),
      { numRuns: 500 },
    );
  });

  it("reports certainty as 0, the impossible as -Infinity", () => {
    const row = new Float32Array(100).fill(Number.NEGATIVE_INFINITY);
    row[70] = 5;
    expect(promptTokenLogprobs(row, 70, 3)).toEqual({
      logprob: 0,
      rank: 1,
      topIds: [70, 0, 1],
      topLogprobs: [0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
    });
    expect(promptTokenLogprobs(row, 4, 0)).toEqual({
      logprob: Number.NEGATIVE_INFINITY,
      rank: 100,
      topIds: [],
      topLogprobs: [],
    });
  });

  it("counts equal entries in the rank and lists them by id", () => {
    const row = Float32Array.of(1, 3, 2, 3, 2, 2);
    expect(promptTokenLogprobs(row, 4, 4)).toMatchObject({ rank: 5, topIds: [1, 3, 2, 4] });
    expect(promptTokenLogprobs(row, 3, 1)).toMatchObject({ rank: 2, topIds: [1] });
  });

  it("gives a row the same bits alone, after other rows, and on every machine", () => {
    const row = Float32Array.from({ length: 1000 }, (_, i) => ((i * 7919) % 1000) / 64 - 5);
    const alone = promptTokenLogprobs(row, 123, 2);
    promptTokenLogprobs(new Float32Array(1000).fill(3), 1, 5);
    promptTokenLogprobs(new Float32Array(10), 1, 5);
    expect(promptTokenLogprobs(row, 123, 2)).toEqual(alone);
    expect(alone.logprob).toBe(-19.197935263913003);
    expect(alone.logprob).toBeCloseTo(referenceLogprobs([...row])[123]!, 7);
  });

  it("refuses rows that are not a distribution", () => {
    expect(() => promptTokenLogprobs(new Float32Array(4).fill(Number.NEGATIVE_INFINITY), 0, 0)).toThrow(
      InvalidLogitsError,
    );
    expect(() => promptTokenLogprobs(Float32Array.of(1, Number.NaN), 0, 0)).toThrow("NaN");
  });
});
