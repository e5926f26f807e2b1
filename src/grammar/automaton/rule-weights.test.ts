import { expect, test } from "vitest";
import { GrammarBuilder, optional, repeat, sequence, text } from "../expression.ts";
import { RuleWeights } from "./rule-weights.ts";

test("small rules are inlined; large and recursive rules are called", () => {
  const builder = new GrammarBuilder();
  builder.rule(text("short"));
  builder.rule(text("a rule with a long text"));
  const recursive = builder.declare();
  builder.define(recursive, sequence(text("x"), optional({ kind: "rule", rule: recursive })));
  const weights = new RuleWeights(builder.finish(text("")));
  expect([0, 1, recursive].map((rule) => weights.inlined(rule))).toEqual([true, false, false]);
});

test("a rule that is used once is inlined, however large it is", () => {
  const builder = new GrammarBuilder();
  const once = builder.rule(text("a rule with a long text"));
  const twice = builder.rule(text("another rule with a long text"));
  const both = sequence(once, twice, text("-"), twice);
  const weights = new RuleWeights(builder.finish(both));
  expect([0, 1].map((rule) => weights.inlined(rule))).toEqual([true, false]);
  // What is emitted twice uses its rules twice.
  const repeated = new RuleWeights(builder.finish(repeat(both, 1, null)));
  expect(repeated.inlined(0)).toBe(false);
});

test("an expression consumes input if its shortest match is not empty", () => {
  const weights = new RuleWeights(new GrammarBuilder().finish(text("")));
  expect(weights.consumes(text("a"))).toBe(true);
  expect(weights.consumes(repeat(text("a"), 0, 3))).toBe(false);
  expect(weights.consumes(sequence(optional(text("a")), text("b")))).toBe(true);
});
