// A Jinja template: parsed once, rendered for many sets of variables, synchronously and within limits. An error begins with
// the line it happened in, except for what the template raises on purpose (Raised).

import { Evaluator } from "./evaluator.ts";
import { GLOBALS, Raised } from "./globals.ts";
import { parseTemplate } from "./parser.ts";
import type { Statement } from "./syntax.ts";
import { fromJson, type Limits, Scope, type Value } from "./values.ts";

/** For templates that are trusted: what no prompt comes near. */
const WIDE_LIMITS: Limits = {
  maxSteps: Number.POSITIVE_INFINITY,
  maxText: 64_000_000,
  maxItems: 1_000_000,
  maxTotalText: 512_000_000,
};

export class Template {
  readonly statements: readonly Statement[];

  constructor(source: string) {
    this.statements = parseTemplate(source);
  }

  /** `variables` are JSON; `globals` replace or join the built-in functions. */
  render(
    variables: Readonly<Record<string, unknown>>,
    limits = WIDE_LIMITS,
    globals: Iterable<readonly [string, Value]> = [],
  ): string {
    const given = Object.entries(variables).map(([name, value]) => [name, fromJson(value)] as const);
    const evaluator = new Evaluator(limits);
    try {
      return evaluator.run(this.statements, new Scope(new Scope(null, [...GLOBALS, ...globals]), given));
    } catch (cause) {
      if (cause instanceof Raised) throw cause;
      throw new Error(`line ${evaluator.line}: ${reasonOf(cause)}`, { cause });
    }
  }
}

function reasonOf(cause: unknown): string {
  if (cause instanceof RangeError && /call stack/.test(cause.message)) return "it is nested too deeply";
  return cause instanceof Error ? cause.message : String(cause);
}
