// Decides whether the body of a rule is copied or called. Rules that are small or used once are copied: each call that
// is possible at some point of a text costs time there. Recursive rules are always called. The weight of an expression
// is roughly the number of states it takes when copied.

import type { Expression, Grammar } from "../expression.ts";

/** Rules up to this weight are copied in place. */
const INLINE_WEIGHT = 12;
const HEAVY = 1_000_000;

export class RuleWeights {
  readonly #grammar: Grammar;
  /** undefined = not visited; null = being visited (so: recursive). */
  readonly #rules = new Map<number, number | null>();
  readonly #recursive = new Set<number>();
  /** How often a rule is used; from the second use on, they are not counted. */
  readonly #uses: Uint8Array;
  readonly #consuming = new Map<Expression, boolean>();

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.of(grammar.root);
    for (let rule = 0; rule < grammar.rules.length; rule++) this.#rule(rule);
    this.#uses = countUses(grammar);
  }

  inlined(rule: number): boolean {
    return this.#rule(rule) <= INLINE_WEIGHT || (this.#uses[rule] === 1 && !this.#recursive.has(rule));
  }

  of(expression: Expression): number {
    switch (expression.kind) {
      case "set":
        return expression.set.length > 0 && expression.set.at(-1)![1] > 0x7f ? 8 + expression.set.length : 1;
      case "texts":
        return expression.texts.reduce((sum, value) => sum + value.length, 0);
      case "sequence":
        return capped(expression.parts.reduce((sum, part) => sum + this.of(part), 0));
      case "choice":
        return capped(expression.options.reduce((sum, option) => sum + this.of(option), 0));
      case "repeat":
        return capped(1 + this.of(expression.body) * (expression.max ?? expression.min + 1));
      case "rule":
        return Math.min(this.#rule(expression.rule), INLINE_WEIGHT + 1);
      case "dfa":
        return capped(expression.dfa.states.length * 4);
      case "graph":
        return capped(expression.edges.reduce((sum, edge) => sum + this.of(edge.expression), 0));
      case "mark":
        return 2;
      case "dispatch":
      case "assertion":
        return HEAVY;
      default:
        return expression satisfies never;
    }
  }

  /** True when every match has at least one byte; false also when that is hard to tell. */
  consumes(expression: Expression): boolean {
    const known = this.#consuming.get(expression);
    if (known !== undefined) return known;
    this.#consuming.set(expression, false);
    const result = this.#consumes(expression);
    this.#consuming.set(expression, result);
    return result;
  }

  #consumes(expression: Expression): boolean {
    switch (expression.kind) {
      case "set":
      case "mark":
        return true;
      case "texts":
        return !expression.texts.includes("");
      case "sequence":
        return expression.parts.some((part) => this.consumes(part));
      case "choice":
        return expression.options.every((option) => this.consumes(option));
      case "repeat":
        return expression.min > 0 && this.consumes(expression.body);
      case "rule":
        return this.consumes(this.#grammar.rules[expression.rule]!);
      case "dfa":
        return !expression.dfa.states[0]!.final;
      case "graph":
      case "dispatch":
      case "assertion":
        return false;
      default:
        return expression satisfies never;
    }
  }

  #rule(rule: number): number {
    const known = this.#rules.get(rule);
    if (known === null) {
      this.#recursive.add(rule);
      return HEAVY;
    }
    if (known !== undefined) return known;
    this.#rules.set(rule, null);
    // A call back to a rule being visited weighs more than the limit, so every rule on a cycle ends above it.
    const weight = this.of(this.#grammar.rules[rule]!);
    this.#rules.set(rule, weight);
    return weight;
  }
}

/** An expression that is part of several others is emitted for each of them, so its rules are used more than once. */
function countUses({ rules, root, afterMarker }: Grammar): Uint8Array {
  const uses = new Uint8Array(rules.length);
  const visits = new Map<Expression, number>();
  const queue = [root, ...(afterMarker ? [afterMarker.root] : []), ...rules];
  for (let expression = queue.pop(); expression !== undefined; expression = queue.pop()) {
    const visited = visits.get(expression) ?? 0;
    if (visited === 2) continue;
    visits.set(expression, visited + 1);
    if (expression.kind === "rule") uses[expression.rule] = Math.min(2, uses[expression.rule]! + 1);
    else queue.push(...parts(expression));
  }
  return uses;
}

function parts(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "sequence":
      return expression.parts;
    case "choice":
      return expression.options;
    case "repeat":
      return (expression.max ?? expression.min + 1) === 2 ? [expression.body, expression.body] : [expression.body];
    case "graph":
      return expression.edges.map((edge) => edge.expression);
    case "dispatch":
      return expression.branches;
    default:
      return [];
  }
}

function capped(weight: number): number {
  return Math.min(weight, HEAVY);
}
