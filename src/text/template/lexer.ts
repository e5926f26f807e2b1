// Template source → tokens. Whitespace around tags follows the settings that transformers uses: trim_blocks removes the
// newline after a block, lstrip_blocks the indentation before one; `-` strips more and `+` turns both off.
import { strip } from "./text-functions.ts";

interface Token {
  /** "delimiter": {{ }} {% %}. Strings come without quotes and with their escapes resolved. */
  type: "text" | "delimiter" | "name" | "string" | "integer" | "float" | "operator" | "end";
  value: string;
  /** Counted from 1. */
  line: number;
}

const RAW_BEGIN = /\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})/y;
const RAW_END = /\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)/g;
const COMMENT_END = /\+#\}|-#\}\s*|#\}\n?/g;
const TAG_ENDS = { "{{": /-?\}\}/y, "{%": /[-+]?%\}/y };
const SPACE = /\s+/y;
const LITERALS = [
  ["float", /(?<!\.)\d+(?:_\d+)*(?:(?:\.\d+(?:_\d+)*)?[eE][+-]?\d+(?:_\d+)*|\.\d+(?:_\d+)*)/y],
  ["integer", /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*/y],
  ["name", /[\p{ID_Start}_]\p{ID_Continue}*/uy],
  ["string", /'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"/sy],
  ["operator", /\/\/|\*\*|[=!<>]=|[-+/*%~[\](){}<>=.:|,]/y],
] as const;
const CLOSING: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

class TemplateSyntaxError extends Error {
  constructor(message: string, line: number) {
    super(`line ${line}: ${message}`);
  }
}

export function tokenize(source: string): Token[] {
  return new Lexer(source.replace(/\r\n?/g, "\n").replace(/\n$/, "")).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #counted = 0;
  /** Whether the text that follows begins a line: lstrip_blocks applies to it. */
  #startsLine = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    const opening = /\{[{%#]/g;
    for (;;) {
      opening.lastIndex = this.#at;
      const tag = opening.exec(this.#source);
      if (!tag) break;
      const sign = this.#source[tag.index + 2] ?? "";
      this.#text(tag.index, sign, tag[0] !== "{{");
      this.#at = tag.index;
      if (this.#match(RAW_BEGIN)) this.#raw();
      else {
        this.#at = tag.index + (sign === "-" || sign === "+" ? 3 : 2);
        if (tag[0] === "{#") this.#comment();
        else this.#tag(tag[0] === "{{" ? "{{" : "{%", tag.index);
      }
      this.#startsLine = this.#source[this.#at - 1] === "\n";
    }
    this.#push("text", this.#source.slice(this.#at), this.#at);
    this.#push("end", "", this.#source.length);
    return this.#tokens;
  }

  /** The text up to a tag, without the whitespace that the tag's sign or lstrip_blocks removes. */
  #text(end: number, sign: string, isBlock: boolean): void {
    let text = this.#source.slice(this.#at, end);
    if (sign === "-") text = strip(text, "right", null);
    else if (isBlock && sign !== "+") {
      const lineStart = text.lastIndexOf("\n") + 1;
      const isBlank = strip(text.slice(lineStart), "right", null) === "";
      if (isBlank && (lineStart > 0 || this.#startsLine)) text = text.slice(0, lineStart);
    }
    this.#push("text", text, this.#at);
  }

  #raw(): void {
    this.#startsLine = this.#source[this.#at - 1] === "\n";
    RAW_END.lastIndex = this.#at;
    const end = RAW_END.exec(this.#source);
    if (!end) throw this.#error("{% raw %} has no {% endraw %}");
    this.#text(end.index, end[1]!, true);
    this.#at = end.index + end[0].length;
  }

  #comment(): void {
    COMMENT_END.lastIndex = this.#at;
    const end = COMMENT_END.exec(this.#source);
    if (!end) throw this.#error("a comment has no end");
    this.#at = end.index + end[0].length;
  }

  #tag(opening: "{{" | "{%", start: number): void {
    this.#push("delimiter", opening, start);
    const open: string[] = [];
    for (;;) {
      this.#match(SPACE);
      const before = this.#at;
      const end = open.length === 0 && this.#match(TAG_ENDS[opening]);
      if (end) {
        this.#push("delimiter", end.slice(-2), before);
        if (end.startsWith("-")) this.#match(SPACE);
        else if (end === "%}" && this.#source[this.#at] === "\n") this.#at++;
        return;
      }
      const [type, text] = this.#literal();
      if (type === "operator") this.#balance(text, open);
      this.#push(type, type === "string" ? this.#unescape(text.slice(1, -1)) : text, before);
    }
  }

  #literal(): [type: Token["type"], text: string] {
    for (const [type, pattern] of LITERALS) {
      const text = this.#match(pattern);
      if (text) return [type, text];
    }
    const next = this.#source[this.#at];
    throw this.#error(next === undefined ? "a tag has no end" : `unexpected character ${JSON.stringify(next)}`);
  }

  /** Inside brackets nothing ends a tag: `{{ {"a": {}} }}`. */
  #balance(operator: string, open: string[]): void {
    const closing = CLOSING[operator];
    if (closing) open.push(closing);
    else if (/[)\]}]/.test(operator) && open.pop() !== operator) throw this.#error(`unexpected '${operator}'`);
  }

  /** As Python reads a literal: an unknown escape stays as it is written. */
  #unescape(text: string): string {
    if (!text.includes("\\")) return text;
    return text.replace(
      /\\(?:([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([\s\S]))/g,
      (written, octal?: string, x?: string, u?: string, long?: string, letter?: string) => {
        if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
        const hexadecimal = x ?? u ?? long;
        if (hexadecimal === undefined) {
          if (/[xuUN]/.test(letter!)) throw this.#error(`unknown escape ${written}`);
          return SIMPLE_ESCAPES[letter!] ?? written;
        }
        const code = Number.parseInt(hexadecimal, 16);
        if (code > 0x10ffff) throw this.#error(`unknown escape ${written}`);
        return String.fromCodePoint(code);
      },
    );
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source)?.[0] ?? null;
    this.#at += found?.length ?? 0;
    return found;
  }

  #push(type: Token["type"], value: string, start: number): void {
    if (type === "text" && value === "") return;
    this.#tokens.push({ type, value, line: this.#lineAt(start) });
  }

  #lineAt(position: number): number {
    for (; this.#counted < position; this.#counted++) if (this.#source[this.#counted] === "\n") this.#line++;
    return this.#line;
  }

  #error(message: string): TemplateSyntaxError {
    return new TemplateSyntaxError(message, this.#lineAt(this.#at));
  }
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

// The parser's view of the tokens: look at the next one, take it if it fits, or fail with its line.

/** Nested brackets, operators and blocks; templates in use stay below fifty. */
const MAX_DEPTH = 200;

export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at]!;
  }

  take(): Token {
    const token = this.current;
    if (token.type !== "end") this.#at++;
    return token;
  }

  is(type: Token["type"], value: string, ahead = 0): boolean {
    const token = this.#tokens[this.#at + ahead];
    return token?.type === type && token.value === value;
  }

  isOperator(value: string, ahead = 0): boolean {
    return this.is("operator", value, ahead);
  }

  isName(value: string, ahead = 0): boolean {
    return this.is("name", value, ahead);
  }

  skip(type: Token["type"], value: string): boolean {
    const fits = this.is(type, value);
    if (fits) this.#at++;
    return fits;
  }

  skipOperator(value: string): boolean {
    return this.skip("operator", value);
  }

  skipName(value: string): boolean {
    return this.skip("name", value);
  }

  expect(type: Token["type"], value: string): void {
    if (!this.skip(type, value)) throw this.unexpected(`'${value}'`);
  }

  name(): string {
    if (this.current.type !== "name") throw this.unexpected("a name");
    return this.take().value;
  }

  /** Runs one level of a recursive rule. */
  nested<T>(parse: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.error("it is nested too deeply");
    const result = parse();
    this.#depth--;
    return result;
  }

  unexpected(wanted: string): TemplateSyntaxError {
    const { type, value } = this.current;
    return this.error(`expected ${wanted}, found ${type === "end" ? "the end of the template" : `'${value}'`}`);
  }

  error(message: string): TemplateSyntaxError {
    return new TemplateSyntaxError(message, this.current.line);
  }
}
