// Text lengths of an expression in characters, and expressions limited to a range of lengths where that needs no
// automaton.

import { type Expression, repeat, sequence } from "../../expression.ts";

/** Maxima from here on are kept less exactly, because an automaton of that length would be too large. */
const LARGE = 1_000;
const MAX_SPREAD = 16;

/** The texts that are min to max characters long; null if that needs an automaton. */
export function withBounds(expression: Expression, min: number, max: number | null): Expression | null {
  const [shortest, longest] = lengthRange(expression);
  if (shortest >= min && (max === null || longest <= max)) return expression;
  const parts = expression.kind === "sequence" ? expression.parts : [expression];
  const at = parts.findIndex((each) => each.kind === "repeat" && each.body.kind === "set" && !hasFixedLength(each));
  const part = parts[at];
  if (part?.kind !== "repeat") return null;
  // By index: the same expression may occur twice.
  const others = parts.filter((_, index) => index !== at).map(lengthRange);
  const least = others.reduce((sum, [low]) => sum + low, 0);
  const most = others.reduce((sum, [, high]) => sum + high, 0);
  // Texts near a large maximum are left out if the other parts vary a little in length.
  if (most > least + (max !== null && max >= LARGE ? MAX_SPREAD : 0)) return null;
  const from = Math.max(part.min, min - least);
  const to = max === null ? part.max : Math.min(part.max ?? max, max - most);
  if (to !== null && to < from) return null;
  return sequence(...parts.map((each, index) => (index === at ? repeat(part.body, from, to) : each)));
}

function hasFixedLength(expression: Expression): boolean {
  const [shortest, longest] = lengthRange(expression);
  return shortest === longest;
}

/** Lengths of the shortest and longest text, in characters. */
function lengthRange(expression: Expression): [number, number] {
  switch (expression.kind) {
    case "set":
      return [1, 1];
    case "texts": {
      const lengths = expression.texts.map((value) => Array.from(value).length);
      return [Math.min(...lengths), Math.max(...lengths)];
    }
    case "sequence":
      return expression.parts.map(lengthRange).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    case "choice":
      return expression.options
        .map(lengthRange)
        .reduce(([a, b], [c, d]) => [Math.min(a, c), Math.max(b, d)], [Number.POSITIVE_INFINITY, 0]);
    case "repeat": {
      const [low, high] = lengthRange(expression.body);
      return [
        low * expression.min,
        expression.max === null ? (high === 0 ? 0 : Number.POSITIVE_INFINITY) : high * expression.max,
      ];
    }
    default:
      return [0, Number.POSITIVE_INFINITY];
  }
}
