import { expect, it } from "vitest";
import { constraintNotes } from "./constraint-notes.ts";

it("says how much was left, what was wanted, and where the reply could have ended", () => {
  const free = { legal: 40, forced: false, may_end: false };
  expect(constraintNotes(free)).toEqual(["the constraint left 40 tokens"]);
  const wanted = { token_string: "null", logprob: Math.log(0.75) };
  expect(constraintNotes({ ...free, may_end: true, legal_mass: 0.1, likeliest_illegal: wanted })).toEqual([
    "the constraint left 40 tokens, 10 % of the model's probability",
    'the model wanted "null" (75 %)',
    "the reply could have ended before it",
  ]);
  expect(
    constraintNotes({ legal: 1, forced: true, may_end: false, legal_mass: 0.9, likeliest_illegal: wanted }),
  ).toEqual(["the constraint left only this token, 90 % of the model's probability", 'the model wanted "null" (75 %)']);
});
