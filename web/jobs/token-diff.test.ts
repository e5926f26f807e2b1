import { expect, it } from "vitest";
import type { Sequence } from "./records.ts";
import { tokenDiff } from "./token-diff.ts";

const sequence = (...texts: string[]): Sequence => ({
  ...{ tokens: texts.map((_text, i) => i), token_strings: texts },
  ...{ mask: texts.map(() => 1 as const), logprobs: texts.map(() => -1), advantages: texts.map(() => 1) },
  ...{ gradient_step: null, gradient_step_tokens: null },
});

it("joins what both have, and what only one has", () => {
  expect(tokenDiff([sequence("It", " is", " 5", ".")], [sequence("It", " is", " 6", ".")])).toEqual([
    { kind: "both", text: "It is" },
    { kind: "theirs", text: " 5" },
    { kind: "mine", text: " 6" },
    { kind: "both", text: "." },
  ]);
  expect(tokenDiff([], [])).toEqual([]);
  expect(tokenDiff([sequence("a")], [sequence("a", "b")])).toEqual([
    { kind: "both", text: "a" },
    { kind: "mine", text: "b" },
  ]);
});

it("gives up where too much differs, but not on a long prompt", () => {
  const long = Array.from({ length: 5000 }, (_, i) => `${i} `);
  expect(tokenDiff([sequence(...long)], [sequence(...long.toReversed())])).toBe(null);
  expect(tokenDiff([sequence(...long, "x")], [sequence(...long, "y")])).toHaveLength(3);
});
