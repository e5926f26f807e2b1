// Reads EBNF grammars in the GBNF style (`root ::= …`): strings, character classes, groups, alternatives, quantifiers and
// comments with #. Rules may come in any order. The rule `root` is the start.

import { charSet, choice, type Expression, type GrammarBuilder, repeat, sequence, text } from "../expression.ts";
import { errorAtLine, excerpt, GrammarError } from "../grammar-error.ts";
import { parseClass } from "./regex-class.ts";
import { parseStringLiteral, SourceReader } from "./source-reader.ts";

const MAX_DEPTH = 200;
const MAX_REPEAT = 100_000;
const IDENTIFIER = /[A-Za-z_][A-Za-z0-9_.-]*/y;
const RULE_START = /[A-Za-z_][A-Za-z0-9_.-]*\s*::=/y;

/** Adds the grammar's rules to `builder`; returns its start. */
export function parseEbnf(source: string, builder: GrammarBuilder): Expression {
  return new EbnfParser(source, builder).parse();
}

class EbnfParser {
  readonly #reader: SourceReader;
  readonly #builder: GrammarBuilder;
  readonly #rules = new Map<string, { id: number; defined: boolean; firstUse: number }>();

  constructor(source: string, builder: GrammarBuilder) {
    this.#builder = builder;
    this.#reader = new SourceReader(source);
  }

  parse(): Expression {
    const reader = this.#reader;
    this.#skip();
    while (!reader.done) {
      const position = reader.position;
      const name = reader.match(IDENTIFIER)?.[0];
      this.#skip();
      if (name === undefined || !reader.take("::=")) throw this.#fail("expected a rule: name ::= …", position);
      const rule = this.#rule(name, position);
      if (rule.defined) throw this.#fail(`rule ${excerpt(name)} is defined twice`, position);
      rule.defined = true;
      this.#builder.define(rule.id, this.#alternatives(0));
    }
    for (const [name, rule] of this.#rules) {
      if (!rule.defined) throw this.#fail(`rule ${excerpt(name)} is not defined`, rule.firstUse);
    }
    const root = this.#rules.get("root");
    if (!root) throw new GrammarError("the grammar has no rule named root");
    return { kind: "rule", rule: root.id };
  }

  #alternatives(depth: number): Expression {
    if (depth > MAX_DEPTH) throw this.#fail(`groups nested deeper than ${MAX_DEPTH}`, this.#reader.position);
    const options: Expression[] = [];
    do {
      this.#skip();
      options.push(this.#sequence(depth));
    } while (this.#reader.take("|"));
    return choice(...options);
  }

  #sequence(depth: number): Expression {
    const reader = this.#reader;
    const parts: Expression[] = [];
    while (!reader.done && !reader.at("|") && !reader.at(")")) {
      RULE_START.lastIndex = reader.position;
      if (RULE_START.test(reader.source)) break;
      const element = this.#element(depth);
      this.#skip();
      parts.push(this.#quantified(element));
      this.#skip();
    }
    return sequence(...parts);
  }

  #element(depth: number): Expression {
    const reader = this.#reader;
    const position = reader.position;
    if (reader.take('"')) return text(parseStringLiteral(reader, '"', (message, at) => this.#fail(message, at)));
    if (reader.take("[")) {
      return charSet(parseClass(reader, (message, at) => this.#fail(message, at ?? reader.position)));
    }
    if (reader.take("(")) {
      if (reader.at("=")) throw this.#fail("lookahead is not supported", position);
      const inner = this.#alternatives(depth + 1);
      if (!reader.take(")")) throw this.#fail("unclosed (", position);
      return inner;
    }
    const name = reader.match(IDENTIFIER)?.[0];
    if (name === undefined) throw this.#fail(`unexpected ${JSON.stringify(reader.peek())}`, position);
    if (reader.at("(")) throw this.#fail(`macro ${excerpt(name)}(…) is not supported`, position);
    return { kind: "rule", rule: this.#rule(name, position).id };
  }

  #quantified(element: Expression): Expression {
    const reader = this.#reader;
    const position = reader.position;
    let result = element;
    for (;;) {
      if (reader.take("*")) result = repeat(result, 0, null);
      else if (reader.take("+")) result = repeat(result, 1, null);
      else if (reader.take("?")) result = repeat(result, 0, 1);
      else if (reader.take("{")) {
        const counts = /^\s*(\d+)\s*(,\s*(\d*)\s*)?$/.exec(reader.until("}") ?? "");
        if (!counts) throw this.#fail("a repetition is written {n}, {n,} or {n,m}", position);
        const min = Number(counts[1]);
        const max = counts[2] === undefined ? min : counts[3] === "" ? null : Number(counts[3]);
        if (max !== null && max < min) throw this.#fail("repetition bounds are in the wrong order", position);
        if (Math.max(min, max ?? 0) > MAX_REPEAT) throw this.#fail(`repetition of more than ${MAX_REPEAT}`, position);
        result = repeat(result, min, max);
      } else return result;
    }
  }

  #rule(name: string, position: number): { id: number; defined: boolean } {
    let rule = this.#rules.get(name);
    if (!rule) {
      rule = { id: this.#builder.declare(), defined: false, firstUse: position };
      this.#rules.set(name, rule);
    }
    return rule;
  }

  #skip(): void {
    while (this.#reader.match(/\s+|#[^\n]*/y));
  }

  #fail(message: string, offset: number): GrammarError {
    return errorAtLine(`invalid grammar: ${message}`, this.#reader.source, offset);
  }
}
