// Reads quoted strings of EBNF and Lark sources.

import type { GrammarError } from "../grammar-error.ts";
import type { SourceReader } from "./source-reader.ts";

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
