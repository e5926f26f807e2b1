// Resolves the anchors and lookaheads of a regular expression. Their meaning depends on what comes before and after them.

import { complementDfa, determinise, intersectDfas } from "../char-dfa.ts";
import { ANY_CODE_POINT } from "../code-points.ts";
import { charSet, choice, type Expression, empty, repeat, sequence } from "../expression.ts";
import { errorAt, GrammarError } from "../grammar-error.ts";

/**
 * full: the whole text matches. search: the text contains a match, as with JSON Schema's `pattern`. part: like full, but
 * more text follows. A lookahead would see into that text, so it is refused.
 */
export type Mode = "full" | "search" | "part";

type Assertion = "start" | "end";
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
export type Part = Expression | { kind: "anchor"; anchor: Assertion; position: number } | Look | OpenGroup;

const anything = repeat(charSet(ANY_CODE_POINT), 0, null);
const SUBJECT = "a regex with lookahead";

export function hasLook(parts: readonly Part[]): boolean {
  return parts.some((part) => part.kind === "look" || part.kind === "open group");
}

/** The texts that one alternative of a whole pattern allows. */
export function inContext(parts: readonly Part[], mode: Mode): Expression {
  const isAnchor = (part: Part | undefined, anchor: Assertion): boolean =>
    part?.kind === "anchor" && part.anchor === anchor;
  let from = 0;
  let to = parts.length;
  while (from < to && isAnchor(parts[from], "start")) from++;
  while (to > from && isAnchor(parts[to - 1], "end")) to--;
  if (hasLook(parts)) {
    if (mode === "part") throw new GrammarError("invalid regex: lookahead is not supported here");
    if (mode === "full" || from > 0) return followed(parts, mode === "full" ? empty : anything, true);
    return sequence(anything, followed(parts, anything, false));
  }
  const inner = parts.slice(from, to);
  for (const part of inner) {
    if (part.kind === "anchor") throw errorAt("invalid regex: an anchor in the middle can never match", part.position);
  }
  const before = mode === "search" && from === 0 ? anything : empty;
  const after = mode === "search" && to === parts.length ? anything : empty;
  return sequence(before, ...(inner as Expression[]), after);
}

/** Texts of `parts` and whatever may follow them. A lookahead is an intersection with all of the rest of the text. */
function followed(parts: readonly Part[], after: Expression, atStart: boolean): Expression {
  const leading = parts.findIndex((part) => part.kind !== "anchor" && part.kind !== "look");
  let rest = after;
  for (const [index, part] of [...parts.entries()].reverse()) {
    const first = atStart && (leading < 0 || index <= leading);
    if (part.kind === "anchor") {
      const holds = part.anchor === "start" ? first : determinise(rest, SUBJECT).states[0]!.final;
      if (!holds) throw errorAt("invalid regex: an anchor in the middle can never match", part.position);
      if (part.anchor === "end") rest = empty;
    } else if (part.kind === "look") {
      const seen = determinise(choice(...part.branches.map((branch) => followed(branch, anything, first))), SUBJECT);
      const wanted = part.negative ? complementDfa(seen) : seen;
      rest = { kind: "dfa", dfa: intersectDfas(wanted, determinise(rest, SUBJECT), SUBJECT), json: false };
    } else if (part.kind === "open group") {
      const options = part.branches.map((branch) => followed(branch, rest, first));
      if (part.optional) options.push(rest);
      // As an automaton the rest is built once, however often it is needed.
      rest = { kind: "dfa", dfa: determinise(choice(...options), SUBJECT), json: false };
    } else {
      rest = sequence(part, rest);
    }
  }
  return rest;
}
