import { expect, it } from "vitest";
import type { Sequence } from "./records.ts";
import { coloursOf, numbersAt } from "./token-colours.ts";

const sequence: Sequence = {
  ...{ tokens: [5, 6, 7], token_strings: ["a", "b", "c"], mask: [0, 1, 1] },
  ...{ logprobs: [null, -3, -9], advantages: [0, -2, -2] },
  ...{ gradient_step: 0, gradient_step_tokens: 2 },
};
const numbers = {
  sequence: 0,
  positions: [1, 2],
  values: { ratio: [1, Math.E], gradient: [0.5, -1], reference_kl: [null, null] },
};

it("colours trained tokens, unlikely ones and the sign of the advantage", () => {
  expect(coloursOf("mask", sequence, undefined)).toEqual([null, 0.5, 0.5]);
  expect(coloursOf("logprob", sequence, undefined)).toEqual([null, 0.5, 1]);
  expect(coloursOf("advantage", sequence, undefined)).toEqual([0, -1, -1]);
});

it("colours by the trainer's numbers, the gradient in the direction that training goes", () => {
  expect(coloursOf("ratio", sequence, numbers)).toEqual([null, 0, 1]);
  expect(coloursOf("gradient", sequence, numbers)).toEqual([null, -0.5, 1]);
  expect(coloursOf("gradient", sequence, undefined)).toEqual([null, null, null]);
  const more = {
    ...numbers,
    values: { clipped: [0, -1], entropy: [1, 2], reference_kl: [-0.5, 0.25], moved: [0.1, 0] },
  };
  expect(coloursOf("clipped", sequence, more)).toEqual([null, 0, -1]);
  expect(coloursOf("entropy", sequence, more)).toEqual([null, 0.5, 1]);
  expect(coloursOf("reference_kl", sequence, more)).toEqual([null, -1, 0.5]);
  expect(coloursOf("moved", sequence, more)).toEqual([null, 1, 0]);
});

it("gives tokens that a rule masks a colour of their own", () => {
  const masked = { ...numbers, values: { gradient: [0.5, 0], advantage: [-2, -2], clipped: [-1, 1] } };
  expect(coloursOf("gradient", sequence, masked)).toEqual([null, -1, "masked"]);
  expect(coloursOf("clipped", sequence, masked)).toEqual([null, -1, "masked"]);
  // without an advantage there is nothing to mask
  const flat = { ...masked, values: { ...masked.values, advantage: [-2, 0] } };
  expect(coloursOf("clipped", sequence, flat)).toEqual([null, -1, 1]);
});

it("tells the numbers of one token", () => {
  expect(numbersAt(numbers, 2)).toEqual({ ratio: Math.E, gradient: -1 });
  expect(numbersAt(numbers, 0)).toEqual({});
  expect(numbersAt(undefined, 0)).toEqual({});
});
