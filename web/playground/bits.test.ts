import { expect, it } from "vitest";
import { compareBits, whyDifferent } from "./bits.ts";

const tokens = (...pairs: [number, number][]) => pairs.map(([id, logprob]) => ({ id, logprob }));

it("compares log-probabilities to the last bit", () => {
  const sampled = tokens([1, -0.1], [2, -0.30000000000000004], [3, -2]);
  expect(compareBits(sampled, tokens([1, -0.1], [2, -0.30000000000000004], [3, -2]))).toEqual({
    same: 3,
    total: 3,
    firstDifference: null,
  });
  expect(compareBits(sampled, tokens([1, -0.1], [2, -0.3], [3, -2]))).toEqual({
    same: 2,
    total: 3,
    firstDifference: { at: 1, sampled: -0.30000000000000004, again: -0.3 },
  });
  expect(compareBits(sampled, tokens([1, -0.1]))).toMatchObject({ same: 1, firstDifference: { at: 1, again: null } });
  expect(compareBits(sampled, tokens([9, -0.1], [2, -0.30000000000000004], [3, -2])).same).toBe(2);
});

it("says what may have made a difference", () => {
  const at = { at: 0, sampled: -1 };
  expect(whyDifferent({ ...at, again: -2 })).toContain("a constraint");
  expect(whyDifferent({ ...at, again: -0.5 })).toContain("precision");
  expect(whyDifferent({ ...at, again: null })).toContain("fewer");
});
