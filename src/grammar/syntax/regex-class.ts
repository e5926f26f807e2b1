// Reads bracketed classes and escapes of regular expressions.

import {
  type CodePointSet,
  codePoints,
  codePointsOf,
  complementSet,
  NO_CODE_POINT,
  unionSets,
} from "../code-points.ts";
import type { GrammarError } from "../grammar-error.ts";
import { ignoringCase, perlClass, posixClass, requireUnicodeProperty } from "./character-classes.ts";
import type { SourceReader } from "./source-reader.ts";

type Fail = (message: string, position?: number) => GrammarError;

const controlEscapes: Record<string, number> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27, "0": 0 };

/** After the opening bracket. `ignoreCase` widens the members before a negation is applied; `wide`: see perlClass. */
export function parseClass(reader: SourceReader, fail: Fail, ignoreCase = false, wide = false): CodePointSet {
  const start = reader.position - 1;
  const negated = reader.take("^");
  let set: CodePointSet = NO_CODE_POINT;
  let first = true;
  while (first || !reader.at("]")) {
    if (reader.done) throw fail("unclosed character class", start);
    first = false;
    if (reader.at("&&") || reader.at("--") || reader.at("~~")) {
      throw fail("set operations inside a character class are not supported");
    }
    const position = reader.position;
    const low = classItem(reader, fail, negated !== wide);
    if (reader.at("-") && !reader.at("-]")) {
      const lowPoint = singlePoint(low);
      reader.next();
      if (reader.done) throw fail("unclosed character class", start);
      const highPoint = singlePoint(classItem(reader, fail, negated !== wide));
      if (lowPoint === null || highPoint === null) throw fail("a range needs single characters at both ends", position);
      if (lowPoint > highPoint) throw fail("range in the wrong order", position);
      set = unionSets(set, codePoints([[lowPoint, highPoint]]));
    } else {
      set = unionSets(set, low);
    }
  }
  reader.next();
  const members = ignoreCase ? ignoringCase(set) : set;
  return negated ? complementSet(members) : members;
}

function classItem(reader: SourceReader, fail: Fail, wide: boolean): CodePointSet {
  const position = reader.position;
  if (reader.take("[:")) {
    const name = reader.until(":]");
    const negated = name?.startsWith("^") ?? false;
    const set = name === null ? null : posixClass(negated ? name.slice(1) : name);
    if (!set) throw fail("unknown class name inside [: :]", position);
    return negated ? complementSet(set) : set;
  }
  if (!reader.take("\\")) return codePointsOf(reader.next());
  if (reader.done) throw fail("unclosed character class", position);
  if (reader.take("b")) return codePointsOf("\b");
  return parseClassEscape(reader, fail, wide);
}

/** After the backslash: everything that stands for a set of characters. */
export function parseClassEscape(reader: SourceReader, fail: Fail, wide = false): CodePointSet {
  const position = reader.position - 1;
  const letter = reader.next();
  const perl = perlClass(letter, wide);
  if (perl) return perl;
  if (letter === "p" || letter === "P") {
    const name = reader.take("{") ? reader.until("}") : reader.done ? null : reader.next();
    if (name === null) throw fail("unclosed \\p{", position);
    const set = requireUnicodeProperty(name.replace(/^\^/, ""), (message) => fail(message, position));
    return (letter === "P") !== name.startsWith("^") ? complementSet(set) : set;
  }
  if (letter === "x" || letter === "u" || letter === "U") return point(codeEscape(reader, letter), position, fail);
  if (letter === "c" && /[A-Za-z]/.test(reader.peek())) return point(reader.next().charCodeAt(0) & 31, position, fail);
  const control = Object.hasOwn(controlEscapes, letter) ? controlEscapes[letter] : undefined;
  if (control !== undefined) return point(control, position, fail);
  if (/[A-Za-z0-9]/.test(letter)) throw fail(`unknown escape \\${letter}`, position);
  return codePointsOf(letter);
}

function codeEscape(reader: SourceReader, letter: string): number {
  if (reader.take("{")) {
    const digits = reader.until("}") ?? "";
    return /^[0-9A-Fa-f]{1,6}$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
  }
  const length = letter === "x" ? 2 : letter === "u" ? 4 : 8;
  const digits = reader.takeUnits(length);
  if (!new RegExp(`^[0-9A-Fa-f]{${length}}$`).test(digits)) return Number.NaN;
  const value = Number.parseInt(digits, 16);
  // \ud83d\ude00 is one character written as two halves.
  if (value >= 0xd800 && value <= 0xdbff && reader.at("\\u")) {
    const low = Number.parseInt(reader.rest.slice(2, 6), 16);
    if (low >= 0xdc00 && low <= 0xdfff) {
      reader.takeUnits(6);
      return 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    }
  }
  return value;
}

function point(value: number, position: number, fail: Fail): CodePointSet {
  const set = Number.isNaN(value) || value > 0x10ffff ? NO_CODE_POINT : codePoints([[value, value]]);
  if (set.length === 0) throw fail("bad character code", position);
  return set;
}

function singlePoint(set: CodePointSet): number | null {
  return set.length === 1 && set[0]![0] === set[0]![1] ? set[0]![0] : null;
}
