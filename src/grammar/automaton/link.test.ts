import { expect, test } from "vitest";
import { choice, GrammarBuilder, never, sequence, text } from "../expression.ts";
import { compileExpressions } from "./expression-compiler.ts";
import { linkProgram } from "./link.ts";

const link = (root: Parameters<GrammarBuilder["finish"]>[0], builder = new GrammarBuilder()) =>
  linkProgram(compileExpressions(builder.finish(root)));

test("a constraint that matches no text is an error", () => {
  expect(() => link(never)).toThrow("the constraint can never be satisfied: no text matches it");
});

test("a rule that only calls itself is an error", () => {
  const builder = new GrammarBuilder();
  const endless = builder.named("endless", () =>
    sequence(
      text("a"),
      builder.named("endless", () => never),
    ),
  );
  expect(() => link(endless, builder)).toThrow(/can never be satisfied/);
});

test("branches that can never finish are removed", () => {
  const builder = new GrammarBuilder();
  const endless = builder.named("endless", () =>
    sequence(
      text("long dead end"),
      builder.named("endless", () => never),
    ),
  );
  const program = link(choice(text("ab"), endless), builder);
  expect(program.finals.length).toBe(link(text("ab")).finals.length);
});

test("bytes that behave the same share a class", () => {
  const { classes, classCount } = link(text("ab"));
  expect(classCount).toBe(4); // below a, a, b, above b
  expect(classes[0x61]).not.toBe(classes[0x62]);
  expect(classes[0x63]).toBe(classes[0xff]);
});
