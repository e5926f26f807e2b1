// The common form of all constraints: expressions over text, grouped into rules that may call each other, even
// recursively. Expressions describe characters; automaton/ turns them into a byte-level automaton. Nodes are immutable
// and may be shared. Build them with the functions below, which simplify as they go.

import type { CodePointSet } from "./code-points.ts";

export type Expression =
  | { kind: "set"; set: CodePointSet }
  /** One of these exact texts. They are built as a prefix tree, so ten thousand of them are cheap. */
  | { kind: "texts"; texts: readonly string[] }
  | { kind: "sequence"; parts: readonly Expression[] }
  | { kind: "choice"; options: readonly Expression[] }
  | { kind: "repeat"; body: Expression; min: number; max: number | null }
  | { kind: "rule"; rule: RuleId }
  /** A graph from node 0 to node 1 whose edges are expressions, for shapes that are not trees. */
  | { kind: "graph"; nodes: number; edges: readonly GraphEdge[] }
  /** A deterministic automaton over characters. With `json`, each character is written as inside a JSON string. */
  | { kind: "dfa"; dfa: CharDfa; json: boolean }
  /**
   * The opening bracket or a comma of an array whose items must differ, or the brace of an object whose names the automaton
   * cannot tell apart. The automaton marks the state behind it (see match/distinct).
   */
  | { kind: "mark"; text: "[" | "," | "{" }
  /** Matches the empty text at some places only. Inside regular expressions, which become automata because of it. */
  | { kind: "assertion"; assertion: Assertion }
  /**
   * Free text up to the first trigger, which is consumed and followed by that trigger's branch. With `loop`, free text
   * continues after the branch; otherwise the expression ends. With `mayEnd`, the text may also end without (another)
   * trigger.
   */
  | { kind: "dispatch"; triggers: readonly string[]; branches: readonly Expression[]; loop: boolean; mayEnd: boolean };

export type RuleId = number;

/** The start or the end of the text, a word boundary, or no word boundary. */
export interface Assertion {
  readonly asserts: "start" | "end" | "boundary" | "inside";
  /** Matches will be excluded, so it holds where it does in any dialect. Otherwise it holds where it does in all. */
  readonly wide: boolean;
}

export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly expression: Expression;
}

/** A state's transitions are on disjoint sets. State 0 is the start. */
export interface CharDfa {
  readonly states: readonly { readonly final: boolean; readonly edges: readonly CharEdge[] }[];
}

export interface CharEdge {
  readonly set: CodePointSet;
  readonly target: number;
}

export const empty: Expression = { kind: "sequence", parts: [] };
/** Matches nothing at all, not even the empty text. */
export const never: Expression = { kind: "choice", options: [] };

export function text(value: string): Expression {
  return value === "" ? empty : { kind: "texts", texts: [value] };
}

export function texts(values: readonly string[]): Expression {
  return { kind: "texts", texts: [...new Set(values)] };
}

export function charSet(set: CodePointSet): Expression {
  return set.length === 0 ? never : { kind: "set", set };
}

export function sequence(...parts: readonly Expression[]): Expression {
  const flat: Expression[] = [];
  for (const part of parts.flatMap((given) => (given.kind === "sequence" ? given.parts : [given]))) {
    const before = literalText(flat.at(-1));
    const value = literalText(part);
    if (before !== null && value !== null) flat[flat.length - 1] = { kind: "texts", texts: [before + value] };
    else flat.push(part);
  }
  if (flat.some(isNever)) return never;
  return flat.length === 1 ? flat[0]! : { kind: "sequence", parts: flat };
}

export function choice(...options: readonly Expression[]): Expression {
  const flat = options.flatMap((option) => (option.kind === "choice" ? option.options : [option]));
  const literals = flat.flatMap((option) => (option.kind === "texts" ? option.texts : []));
  const merged = literals.length < 2 ? flat : [...flat.filter((option) => option.kind !== "texts"), texts(literals)];
  return merged.length === 1 ? merged[0]! : { kind: "choice", options: merged };
}

/** The text if the expression matches exactly one, else null. */
function literalText(expression: Expression | undefined): string | null {
  if (expression?.kind === "texts" && expression.texts.length === 1) return expression.texts[0]!;
  if (expression?.kind !== "set" || expression.set.length !== 1) return null;
  const [low, high] = expression.set[0]!;
  return low === high ? String.fromCodePoint(low) : null;
}

export function repeat(body: Expression, min: number, max: number | null): Expression {
  if (max === 0 || (body.kind === "sequence" && body.parts.length === 0)) return empty;
  if (isNever(body)) return min === 0 ? empty : never;
  return min === 1 && max === 1 ? body : { kind: "repeat", body, min, max };
}

export function optional(body: Expression): Expression {
  return repeat(body, 0, 1);
}

export function isNever(expression: Expression): boolean {
  return expression.kind === "choice" && expression.options.length === 0;
}

/** Collects rules while a constraint is translated. A rule can be referenced before its body is known. */
export class GrammarBuilder {
  readonly bodies: (Expression | null)[] = [];
  #memo = new Map<string, RuleId>();

  declare(): RuleId {
    this.bodies.push(null);
    return this.bodies.length - 1;
  }

  define(rule: RuleId, body: Expression): void {
    this.bodies[rule] = body;
  }

  rule(body: Expression): Expression {
    const id = this.declare();
    this.define(id, body);
    return { kind: "rule", rule: id };
  }

  /** The rule with this name, built on first use. Recursion inside `build` finds the same rule. */
  named(name: string, build: () => Expression): Expression {
    let id = this.#memo.get(name);
    if (id === undefined) {
      id = this.declare();
      this.#memo.set(name, id);
      this.define(id, build());
    }
    return { kind: "rule", rule: id };
  }

  finish(root: Expression): Grammar {
    return { rules: this.bodies.map((body) => body ?? never), root };
  }
}

export interface Grammar {
  readonly rules: readonly Expression[];
  readonly root: Expression;
  /** An alternative root for outputs that begin with the single token spelled `marker`. */
  readonly afterMarker?: { readonly marker: string; readonly root: Expression };
}
