// A cursor over the source text of a constraint. It moves by whole characters, so a surrogate pair is one step.
// Positions count UTF-16 units.
import type { GrammarError } from "../grammar-error.ts";

export class SourceReader {
  readonly source: string;
  position = 0;

  constructor(source: string) {
    this.source = source;
  }

  get done(): boolean {
    return this.position >= this.source.length;
  }

  get rest(): string {
    return this.source.slice(this.position);
  }

  at(text: string): boolean {
    return this.source.startsWith(text, this.position);
  }

  /** The next character without consuming it; "" at the end. */
  peek(): string {
    return this.done ? "" : String.fromCodePoint(this.source.codePointAt(this.position)!);
  }

  next(): string {
    const char = this.peek();
    this.position += char.length;
    return char;
  }

  take(text: string): boolean {
    if (!this.at(text)) return false;
    this.position += text.length;
    return true;
  }

  /** Consumes up to `count` UTF-16 units. */
  takeUnits(count: number): string {
    const taken = this.source.slice(this.position, this.position + count);
    this.position += taken.length;
    return taken;
  }

  /** Consumes through `end` and returns the text before it. Without an `end` it consumes nothing and returns null. */
  until(end: string): string | null {
    const found = this.source.indexOf(end, this.position);
    if (found < 0) return null;
    const text = this.source.slice(this.position, found);
    this.position = found + end.length;
    return text;
  }

  /** Consumes what a sticky regular expression matches here; null = no match. */
  match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.position;
    const found = sticky.exec(this.source);
    if (found) this.position += found[0].length;
    return found;
  }
}

// Reads quoted strings of EBNF and Lark sources.

const simple: Record<string, string> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\x07",
  e: "\x1b",
  "0": "\0",
};

/** After the opening quote, through the closing one. */
export function parseStringLiteral(
  reader: SourceReader,
  quote: string,
  fail: (message: string, at: number) => GrammarError,
): string {
  const start = reader.position - 1;
  let out = "";
  for (;;) {
    if (reader.done || reader.at("\n")) throw fail("unclosed string", start);
    if (reader.take(quote)) return checked(out, start, fail);
    if (!reader.take("\\")) {
      out += reader.next();
      continue;
    }
    const position = reader.position - 1;
    const letter = reader.next();
    const length = letter === "x" ? 2 : letter === "u" ? 4 : letter === "U" ? 8 : 0;
    if (length > 0) {
      const digits = reader.takeUnits(length);
      const code = Number.parseInt(digits, 16);
      if (!new RegExp(`^[0-9A-Fa-f]{${length}}$`).test(digits) || code > 0x10ffff) {
        throw fail("bad character code", position);
      }
      out += String.fromCodePoint(code);
    } else if (Object.hasOwn(simple, letter)) out += simple[letter];
    else if (/[A-Za-z0-9]/.test(letter) || letter === "") throw fail(`unknown escape \\${letter}`, position);
    else out += letter;
  }
}

function checked(value: string, position: number, fail: (message: string, at: number) => GrammarError): string {
  if (/\p{Surrogate}/u.test(value)) throw fail("a string contains half of a surrogate pair", position);
  return value;
}
