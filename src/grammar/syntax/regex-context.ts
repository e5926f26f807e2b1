// Resolves the anchors, word boundaries and lookaheads of a regular expression. Their meaning depends on what comes before
// and after them.

import { complementDfa, intersectDfas } from "../char-dfa.ts";
import { ANY_CODE_POINT } from "../code-points.ts";
import { determinise } from "../determinise.ts";
import { type CharDfa, charSet, choice, type Expression, empty, never, repeat, sequence } from "../expression.ts";
import { errorAt, GrammarError } from "../grammar-error.ts";
import { hasAssertion } from "./character-classes.ts";

/**
 * full: the whole text matches. search: the text contains a match, as with JSON Schema's `pattern`. part: like full, but
 * more text follows. A lookahead would see into that text, so it is refused.
 */
export type Mode = "full" | "search" | "part";

export interface Anchor {
  kind: "anchor";
  anchor: "start" | "end";
  position: number;
}
export interface Look {
  kind: "look";
  negative: boolean;
  branches: Part[][];
  position: number;
}
/** A group with a lookahead inside. It is kept whole, because the lookahead looks at what follows the group. */
interface OpenGroup {
  kind: "open group";
  optional: boolean;
  branches: Part[][];
}
/** Anchors and lookaheads stay in the list until what comes before and after them is known. */
export type Part = Expression | Anchor | Look | OpenGroup;

const anything = repeat(charSet(ANY_CODE_POINT), 0, null);
const SUBJECT = "a regex with lookahead";
const ASSERTING = "a regex with anchors inside or word boundaries";

export function hasLook(parts: readonly Part[]): boolean {
  return parts.some((part) => part.kind === "look" || part.kind === "open group");
}

/** Parts without lookahead as one expression. */
export function joined(parts: readonly Part[]): Expression {
  return sequence(
    ...parts.map((part): Expression => {
      return part.kind === "anchor" ? assertion(part) : (part as Expression);
    }),
  );
}

function assertion({ anchor }: Anchor): Expression {
  return { kind: "assertion", assertion: { asserts: anchor, wide: false } };
}

/** The texts that one alternative of a whole pattern allows. */
export function inContext(parts: readonly Part[], mode: Mode): Expression {
  const isAnchor = (part: Part | undefined, anchor: Anchor["anchor"]): boolean =>
    part?.kind === "anchor" && part.anchor === anchor;
  let from = 0;
  let to = parts.length;
  while (from < to && isAnchor(parts[from], "start")) from++;
  while (to > from && isAnchor(parts[to - 1], "end")) to--;
  if (hasLook(parts)) {
    if (mode === "part") throw new GrammarError("invalid regex: lookahead is not supported here");
    if (mode === "full" || from > 0) return decided(followed(parts, mode === "full" ? empty : anything, true));
    return decided(sequence(anything, followed(parts, anything, false)));
  }
  const inner = joined(parts.slice(from, to));
  if (mode === "part" && hasAssertion(inner)) {
    throw new GrammarError("invalid regex: anchors and word boundaries are not supported here");
  }
  const before = mode === "search" && from === 0 ? anything : empty;
  const after = mode === "search" && to === parts.length ? anything : empty;
  return decided(sequence(before, inner, after));
}

/** The same texts without assertions. The expression must describe the text from its start. */
function decided(expression: Expression): Expression {
  if (!hasAssertion(expression)) return expression;
  return { kind: "dfa", dfa: determinise(expression, ASSERTING), json: false };
}

/** Texts of `parts` and whatever may follow them. A lookahead is an intersection with all of the rest of the text. */
function followed(parts: readonly Part[], after: Expression, atStart: boolean): Expression {
  const leading = parts.findIndex((part) => part.kind !== "anchor" && part.kind !== "look");
  let rest = after;
  for (const [index, part] of [...parts.entries()].reverse()) {
    const first = atStart && (leading < 0 || index <= leading);
    const automaton = (expression: Expression): CharDfa => {
      if (!first && hasAssertion(expression)) throw unclear(part);
      return determinise(expression, SUBJECT);
    };
    if (part.kind === "anchor") {
      if (part.anchor === "end") rest = automaton(rest).states[0]!.final ? empty : never;
      else if (!first) rest = sequence(assertion(part), rest);
    } else if (part.kind === "look") {
      const seen = automaton(choice(...part.branches.map((branch) => followed(branch, anything, first))));
      const wanted = part.negative ? complementDfa(seen) : seen;
      rest = { kind: "dfa", dfa: intersectDfas(wanted, automaton(rest), SUBJECT), json: false };
    } else if (part.kind === "open group") {
      const options = part.branches.map((branch) => followed(branch, rest, first));
      if (part.optional) options.push(rest);
      // As an automaton the rest is built once, however often it is needed.
      rest = { kind: "dfa", dfa: automaton(choice(...options)), json: false };
    } else {
      rest = sequence(part, rest);
    }
  }
  return rest;
}

/** Whether an assertion holds is only known where everything before it is. */
function unclear(part: Part): GrammarError {
  const message = "invalid regex: anchors and word boundaries behind a lookahead in the middle are not supported";
  return part.kind === "look" ? errorAt(message, part.position) : new GrammarError(message);
}
