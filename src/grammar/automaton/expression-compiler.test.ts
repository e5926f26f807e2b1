import { describe, expect, test } from "vitest";
import { codePoints } from "../code-points.ts";
import { charSet, choice, type Expression, GrammarBuilder, never, repeat, sequence, text } from "../expression.ts";
import { Matcher } from "../match/matcher.ts";
import { compileExpressions, LONGEST_TOKEN } from "./expression-compiler.ts";
import { linkProgram } from "./link.ts";
import type { Program } from "./program.ts";

const letter = charSet(codePoints([[0x61, 0x7a]]));

function programOf(root: Expression, builder = new GrammarBuilder()): Program {
  return linkProgram(compileExpressions(builder.finish(root)));
}

function accepts(program: Program, input: string): boolean {
  const matcher = new Matcher(program);
  return matcher.advanceBytes(matcher.start(), new TextEncoder().encode(input))?.accepting ?? false;
}

describe("repetitions", () => {
  test.each([
    [0, 0, [0]],
    [0, 1, [0, 1]],
    [2, 4, [2, 3, 4]],
    [3, null, [3, 4, 5, 6]],
  ])("from %s to %s", (min, max, lengths) => {
    const program = programOf(sequence(text("<"), repeat(letter, min, max), text(">")));
    const found = [0, 1, 2, 3, 4, 5, 6].filter((length) => accepts(program, `<${"x".repeat(length)}>`));
    expect(found).toEqual(lengths);
  });

  test("a large body is called, so the program does not grow by its size for every repetition", () => {
    const heavy = choice(...Array.from({ length: 50 }, (_, i) => sequence(text(`word ${i} `), letter)));
    const once = programOf(heavy).finals.length;
    expect(programOf(repeat(heavy, 0, 100)).finals.length).toBeLessThan(2 * once + 250);
  });

  test("repetition counts far from both bounds share a mask", () => {
    const { maskLike } = programOf(repeat(letter, 0, 4 * LONGEST_TOKEN));
    const shared = maskLike.filter((like, state) => like !== state).length;
    expect(shared).toBeGreaterThan(2 * LONGEST_TOKEN);
    expect(shared).toBeLessThan(4 * LONGEST_TOKEN);
  });
});

describe("rules", () => {
  test("can be mutually recursive", () => {
    const builder = new GrammarBuilder();
    const nested = builder.named("nested", () =>
      choice(
        text("x"),
        sequence(
          text("("),
          builder.named("nested", () => never),
          text(")"),
        ),
      ),
    );
    const program = programOf(nested, builder);
    expect(accepts(program, `${"(".repeat(500)}x${")".repeat(500)}`)).toBe(true);
    expect(accepts(program, "((x)")).toBe(false);
  });

  test("adjacent loops do not leak into each other", () => {
    const program = programOf(sequence(repeat(text("a"), 0, null), repeat(text("b"), 0, null)));
    expect(accepts(program, "aabb")).toBe(true);
    expect(accepts(program, "aba")).toBe(false);
  });
});
