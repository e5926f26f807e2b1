import { expect, test } from "vitest";
import { type Expression, GrammarBuilder, text } from "../expression.ts";
import { Matcher } from "../match/matcher.ts";
import { compileExpressions } from "./expression-compiler.ts";
import { linkProgram } from "./link.ts";

function accepts(expression: Expression & { kind: "dispatch" }, input: string): boolean {
  const matcher = new Matcher(linkProgram(compileExpressions(new GrammarBuilder().finish(expression))));
  return matcher.advanceBytes(matcher.start(), new TextEncoder().encode(input))?.accepting ?? false;
}

const tags = (loop: boolean, mayEnd: boolean) =>
  ({ kind: "dispatch", triggers: ["<a>", "<ab>"], branches: [text("1"), text("2")], loop, mayEnd }) as const;

test("the first trigger in the text selects its branch", () => {
  expect(accepts(tags(false, false), "free <b text <a>1")).toBe(true);
  expect(accepts(tags(false, false), "<<ab>2")).toBe(true);
  expect(accepts(tags(false, false), "<a>2")).toBe(false);
  expect(accepts(tags(false, false), "<a>1 more")).toBe(false);
});

test("text without a trigger may end only if the dispatch allows it", () => {
  expect(accepts(tags(false, false), "no trigger")).toBe(false);
  expect(accepts(tags(false, true), "no trigger")).toBe(true);
});

test("a loop returns to free text", () => {
  expect(accepts(tags(true, true), "x<a>1y<ab>2z")).toBe(true);
  expect(accepts(tags(true, true), "x<a>1y<ab>")).toBe(false);
});
