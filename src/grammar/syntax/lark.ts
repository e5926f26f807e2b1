// Reads Lark grammars: rules, terminals, strings, regex terminals, ranges, groups, optionals, repetition, aliases,
// priorities, %import common.* and %ignore. The start is the rule `start`, or the first one. Templates are refused. Trees
// and contextual lexing mean nothing for generation; they are refused where they would change the language.
import { codePoints, codePointsOf } from "../code-points.ts";
import {
  charSet,
  choice,
  type Expression,
  type GrammarBuilder,
  optional,
  repeat,
  sequence,
  text,
} from "../expression.ts";
import { errorAtLine, excerpt, GrammarError } from "../grammar-error.ts";
import { ignoringCase } from "./character-classes.ts";
import { parseEbnf } from "./ebnf.ts";
import { parseRegex } from "./regex.ts";
import { parseStringLiteral, SourceReader } from "./source-reader.ts";

// Lark's `common` terminals, as regular expressions.

const WORD = "[A-Za-z]+";
const INTEGER = "[0-9]+";
const decimal = `(?:${INTEGER}\\.(?:${INTEGER})?|\\.${INTEGER})`;
const EXPONENT = "[eE][+-]?[0-9]+";
const float = `(?:${INTEGER}${EXPONENT}|${decimal}(?:${EXPONENT})?)`;
const number = `(?:${float}|${INTEGER})`;

const terminals: Record<string, string> = {
  DIGIT: "[0-9]",
  HEXDIGIT: "[a-fA-F0-9]",
  INT: INTEGER,
  SIGNED_INT: `[+-]?${INTEGER}`,
  DECIMAL: decimal,
  FLOAT: float,
  SIGNED_FLOAT: `[+-]?${float}`,
  NUMBER: number,
  SIGNED_NUMBER: `[+-]?${number}`,
  ESCAPED_STRING: '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER: "[A-Za-z]",
  WORD: WORD,
  CNAME: "[A-Za-z_][A-Za-z0-9_]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\f\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
  SH_COMMENT: "#[^\\n]*",
  CPP_COMMENT: "//[^\\n]*",
  C_COMMENT: "/\\*(?:[^*]|\\*+[^*/])*\\*+/",
  SQL_COMMENT: "--[^\\n]*",
  PYTHON_COMMENT: "#[^\\n]*",
};

function commonTerminal(name: string): string | null {
  return Object.hasOwn(terminals, name) ? terminals[name]! : null;
}

const MAX_DEPTH = 200;
const MAX_REPEAT = 100_000;
const DEFINITION = /[?!]*(_?[A-Za-z][A-Za-z0-9_]*)(\.-?\d+)?[ \t]*(\{)?(:)?/y;
const NAME = /_?[A-Za-z][A-Za-z0-9_]*/y;

interface Symbol {
  id: number;
  defined: boolean;
  firstUse: number;
}

/** Adds the grammar's rules to `builder`; returns its start. */
export function parseLark(source: string, builder: GrammarBuilder): Expression {
  return new LarkParser(source, builder).parse();
}

class LarkParser {
  readonly #reader: SourceReader;
  readonly #builder: GrammarBuilder;
  readonly #symbols = new Map<string, Symbol>();
  readonly #ignored: Expression[] = [];
  /** Filled in at the end, when every %ignore is known. */
  readonly #gap: number;
  #firstRule: string | null = null;
  #insideTerminal = false;

  constructor(source: string, builder: GrammarBuilder) {
    this.#builder = builder;
    this.#reader = new SourceReader(source);
    this.#gap = this.#builder.declare();
  }

  parse(): Expression {
    const reader = this.#reader;
    for (this.#skipLines(); !reader.done; this.#skipLines()) {
      if (reader.take("%")) this.#directive();
      else this.#DEFINITION();
      this.#skipInline();
      if (!reader.done && !reader.at("\n")) {
        throw this.#fail(`unexpected ${JSON.stringify(reader.peek())}`, reader.position);
      }
    }
    for (const [symbol, { defined, firstUse }] of this.#symbols) {
      if (!defined) throw this.#fail(`${symbol} is not defined`, firstUse);
    }
    this.#builder.define(this.#gap, optional(choice(...this.#ignored)));
    const start = this.#symbols.has("start") ? "start" : this.#firstRule;
    if (start === null) throw new GrammarError("the grammar has no rules");
    const root: Expression = { kind: "rule", rule: this.#symbols.get(start)!.id };
    return sequence(root, { kind: "rule", rule: this.#gap });
  }

  #DEFINITION(): void {
    const position = this.#reader.position;
    const found = this.#reader.match(DEFINITION);
    if (found?.[3]) throw this.#fail("templates are not supported", position);
    if (!found?.[4]) throw this.#fail("expected a rule or terminal: name: …", position);
    const symbolName = found[1]!;
    const symbol = this.#symbol(symbolName, position);
    if (symbol.defined) throw this.#fail(`${excerpt(symbolName)} is defined twice`, position);
    symbol.defined = true;
    this.#insideTerminal = isTerminal(symbolName);
    if (!this.#insideTerminal) this.#firstRule ??= symbolName;
    this.#builder.define(symbol.id, this.#alternatives(0));
  }

  #directive(): void {
    const position = this.#reader.position - 1;
    const word = this.#reader.match(NAME)?.[0];
    this.#skipInline();
    if (word === "ignore") {
      this.#insideTerminal = true;
      this.#ignored.push(this.#alternatives(0));
    } else if (word === "import") this.#import(position);
    else throw this.#fail(`%${word ?? ""} is not supported`, position);
  }

  #import(position: number): void {
    const found = this.#reader.match(/common(?:\.([A-Z_]+)[ \t]*(?:->[ \t]*([A-Z_][A-Z0-9_]*))?|[ \t]*\(([^)\n]*)\))/y);
    if (!found) throw this.#fail("only %import common.NAME is supported", position);
    const wanted = found[3] === undefined ? [found[1]!] : found[3].split(",").map((part) => part.trim());
    for (const terminal of wanted) {
      const pattern = commonTerminal(terminal);
      if (pattern === null) throw this.#fail(`common.${excerpt(terminal)} does not exist`, position);
      const symbol = this.#symbol(found[2] ?? terminal, position);
      symbol.defined = true;
      this.#builder.define(symbol.id, parseRegex(pattern, "full"));
    }
  }

  #alternatives(depth: number): Expression {
    const reader = this.#reader;
    if (depth > MAX_DEPTH) throw this.#fail(`groups nested deeper than ${MAX_DEPTH}`, reader.position);
    const options: Expression[] = [];
    do options.push(this.#sequence(depth));
    while (this.#takeBar(depth));
    return choice(...options);
  }

  /** A definition continues on the next line if that line starts with |. */
  #takeBar(depth: number): boolean {
    const reader = this.#reader;
    const before = reader.position;
    this.#skipLines();
    if (reader.take("|")) return true;
    if (depth === 0) reader.position = before;
    return false;
  }

  #sequence(depth: number): Expression {
    const reader = this.#reader;
    const parts: Expression[] = [];
    for (;;) {
      if (depth > 0) this.#skipLines();
      else this.#skipInline();
      if (reader.take("->")) {
        this.#skipInline();
        if (!reader.match(NAME)) throw this.#fail("expected an alias after ->", reader.position);
        continue;
      }
      if (reader.done || reader.at("\n") || reader.at("|") || reader.at(")") || reader.at("]")) {
        return sequence(...parts);
      }
      parts.push(this.#quantified(this.#atom(depth)));
    }
  }

  #atom(depth: number): Expression {
    const reader = this.#reader;
    const position = reader.position;
    if (reader.take("(")) return this.#closed(depth, ")", position);
    if (reader.take("[")) return optional(this.#closed(depth, "]", position));
    if (reader.take('"')) return this.#token(this.#string(position));
    if (reader.take("/")) return this.#token(this.#regex(position));
    const found = reader.match(NAME)?.[0];
    if (found === undefined) throw this.#fail(`unexpected ${JSON.stringify(reader.peek())}`, position);
    if (reader.at("{")) throw this.#fail("templates are not supported", position);
    const reference: Expression = { kind: "rule", rule: this.#symbol(found, position).id };
    return isTerminal(found) ? this.#token(reference) : reference;
  }

  #closed(depth: number, end: string, position: number): Expression {
    const inner = this.#alternatives(depth + 1);
    if (!this.#reader.take(end)) throw this.#fail(`missing ${end}`, position);
    return inner;
  }

  /** Whatever %ignore names may come before every token of a rule, but not inside terminals. */
  #token(expression: Expression): Expression {
    return this.#insideTerminal ? expression : sequence({ kind: "rule", rule: this.#gap }, expression);
  }

  #string(position: number): Expression {
    const reader = this.#reader;
    const fail = (message: string, at: number): GrammarError => this.#fail(message, at);
    const value = parseStringLiteral(reader, '"', fail);
    if (reader.take("i")) return sequence(...Array.from(value, (char) => charSet(ignoringCase(codePointsOf(char)))));
    if (!reader.take('.."')) return text(value);
    const end = parseStringLiteral(reader, '"', fail);
    const [low, high] = [value, end].map((side) => (Array.from(side).length === 1 ? side.codePointAt(0)! : Number.NaN));
    if (!(low! <= high!)) throw this.#fail("a range needs single characters in order", position);
    return charSet(codePoints([[low!, high!]]));
  }

  #regex(position: number): Expression {
    const found = this.#reader.match(/((?:\\[^\n]|[^/\\\n])+)\/([a-z]*)/y);
    if (!found) throw this.#fail("unclosed regex", position);
    const flags = found[2]!.replace(/u/g, "");
    if (/[^is]/.test(flags)) throw this.#fail(`regex flags ${flags} are not supported`, position);
    const source = found[1]!.replace(/\\\//g, "/");
    try {
      return parseRegex(flags === "" ? source : `(?${flags})${source}`, "part");
    } catch (error) {
      if (error instanceof GrammarError) throw this.#fail(error.message, position);
      throw error;
    }
  }

  #quantified(atom: Expression): Expression {
    const reader = this.#reader;
    this.#skipInline();
    if (reader.take("*")) return repeat(atom, 0, null);
    if (reader.take("+")) return repeat(atom, 1, null);
    if (reader.take("?")) return optional(atom);
    const position = reader.position;
    if (!reader.take("~")) return atom;
    const counts = reader.match(/[ \t]*(\d+)(?:[ \t]*\.\.[ \t]*(\d+))?/y);
    if (!counts) throw this.#fail("a repetition is written ~n or ~n..m", position);
    const min = Number(counts[1]);
    const max = Number(counts[2] ?? counts[1]);
    if (max < min || max > MAX_REPEAT) {
      throw this.#fail(`repetition counts must be in order and at most ${MAX_REPEAT}`, position);
    }
    return repeat(atom, min, max);
  }

  #symbol(symbolName: string, position: number): Symbol {
    let symbol = this.#symbols.get(symbolName);
    if (!symbol) {
      symbol = { id: this.#builder.declare(), defined: false, firstUse: position };
      this.#symbols.set(symbolName, symbol);
    }
    return symbol;
  }

  #skipInline(): void {
    while (this.#reader.match(/[ \t\r\f]+|\/\/[^\n]*|#[^\n]*/y));
  }

  #skipLines(): void {
    while (this.#reader.match(/\s+|\/\/[^\n]*|#[^\n]*/y));
  }

  #fail(message: string, offset: number): GrammarError {
    return errorAtLine(`invalid Lark grammar: ${message}`, this.#reader.source, offset);
  }
}

function isTerminal(symbolName: string): boolean {
  return symbolName === symbolName.toUpperCase();
}

// A grammar source of either kind: EBNF, or Lark when it has no ::=.
export function parseGrammarSource(source: string, builder: GrammarBuilder): Expression {
  if (source.trim() === "") throw new GrammarError("the grammar is empty");
  return source.includes("::=") ? parseEbnf(source, builder) : parseLark(source, builder);
}
