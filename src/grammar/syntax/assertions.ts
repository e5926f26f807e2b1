// Where anchors and word boundaries hold. Dialects disagree on whether letters beyond ASCII belong to words, so such
// letters are a kind of their own.

import { type CodePointSet, includesPoint, subtractSets } from "../code-points.ts";
import type { Assertion, Expression } from "../expression.ts";
import { perlClass } from "./character-classes.ts";

/** A character beside an assertion: part of a word in all dialects, in some, or in none. The text's edges are "other". */
export type Neighbour = "word" | "foreign" | "other";

const word = perlClass("w")!;
let foreign: CodePointSet | null = null;

/** The characters of the kinds "word" and "foreign". */
export function neighbourSets(): readonly CodePointSet[] {
  foreign ??= subtractSets(perlClass("w", true)!, word);
  return [word, foreign];
}

export function neighbourOf(point: number): Neighbour {
  const [, beyond] = neighbourSets();
  return includesPoint(word, point) ? "word" : includesPoint(beyond!, point) ? "foreign" : "other";
}

export function isBoundary({ asserts }: Assertion): boolean {
  return asserts === "boundary" || asserts === "inside";
}

/** `after` is null at the end of the text. */
export function holds(assertion: Assertion, atStart: boolean, before: Neighbour, after: Neighbour | null): boolean {
  const { asserts, wide } = assertion;
  if (asserts === "start") return atStart;
  if (asserts === "end") return after === null;
  const between = (isWord: (neighbour: Neighbour) => boolean): boolean =>
    (isWord(before) !== isWord(after ?? "other")) === (asserts === "boundary");
  const inAscii = between((neighbour) => neighbour === "word");
  const inUnicode = between((neighbour) => neighbour !== "other");
  return wide ? inAscii || inUnicode : inAscii && inUnicode;
}

export function hasAssertion(expression: Expression): boolean {
  switch (expression.kind) {
    case "assertion":
      return true;
    case "sequence":
      return expression.parts.some(hasAssertion);
    case "choice":
      return expression.options.some(hasAssertion);
    case "repeat":
      return hasAssertion(expression.body);
    default:
      return false;
  }
}
