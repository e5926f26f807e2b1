import { expect, it } from "vitest";
import type { Sequence } from "./records.ts";
import { comparedWith } from "./scored-again.ts";

const SEQUENCE = {
  ...{ tokens: [7, 8, 9], token_strings: ["a", "b", "c"], mask: [0, 1, 1], logprobs: [null, -1, -2] },
  ...{ advantages: [0, 1, 1], gradient_step: null, gradient_step_tokens: null },
} as Sequence;
const scored = (...logprobs: number[]) => logprobs.map((logprob, i) => ({ id: SEQUENCE.tokens[i]!, logprob }));

it("compares the sampled tokens bit for bit, and names the first other one by its place", () => {
  expect(comparedWith(SEQUENCE, scored(Number.NaN, -1, -2), 0)!.compared).toEqual({
    ...{ same: 2, total: 2, firstDifference: null },
  });
  const { compared, numbers } = comparedWith(SEQUENCE, scored(Number.NaN, -1, -2 + Math.log(2)), 3)!;
  expect(compared).toMatchObject({ same: 1, total: 2, firstDifference: { at: 2, sampled: -2 } });
  expect(numbers).toMatchObject({ sequence: 3, positions: [1, 2] });
  expect(numbers.values.ratio![1]).toBeCloseTo(2, 12);
});

it("has nothing to say about tokens without log-probabilities", () => {
  expect(comparedWith({ ...SEQUENCE, logprobs: [null, null, null] }, scored(0, 0, 0), 0)).toBe(null);
});
