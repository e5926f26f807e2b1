// Decides whether the body of a rule is copied or called. The weight of an expression is roughly the number of states it
// takes when copied. Recursive rules are always called.

import type { Expression, Grammar } from "../expression.ts";

/** Rules up to this weight are copied in place. */
const INLINE_WEIGHT = 12;
const HEAVY = 1_000_000;

export class RuleWeights {
  readonly #grammar: Grammar;
  /** undefined = not visited; null = being visited (so: recursive). */
  readonly #rules = new Map<number, number | null>();
  readonly #consuming = new Map<Expression, boolean>();

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.of(grammar.root);
    for (let rule = 0; rule < grammar.rules.length; rule++) this.#rule(rule);
  }

  inlined(rule: number): boolean {
    return this.#rule(rule) <= INLINE_WEIGHT;
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
        return false;
      default:
        return expression satisfies never;
    }
  }

  #rule(rule: number): number {
    const known = this.#rules.get(rule);
    if (known === null) return HEAVY;
    if (known !== undefined) return known;
    this.#rules.set(rule, null);
    // A call back to a rule being visited weighs more than the limit, so every rule on a cycle ends above it.
    const weight = this.of(this.#grammar.rules[rule]!);
    this.#rules.set(rule, weight);
    return weight;
  }
}

function capped(weight: number): number {
  return Math.min(weight, HEAVY);
}
