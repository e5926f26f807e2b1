// Named character classes of regular expressions. Dialects disagree on whether \d, \w and \s go beyond ASCII. Here the
// positive classes are ASCII, and the negated ones exclude all of Unicode's, so that generated text matches either way.
import {
  ANY_CODE_POINT,
  type CodePointSet,
  codePoints,
  codePointsOf,
  complementSet,
  includesPoint,
  subtractSets,
  unionSets,
} from "../code-points.ts";
import type { Assertion, Expression } from "../expression.ts";
import type { GrammarError } from "../grammar-error.ts";

const DIGIT: CodePointSet = [[0x30, 0x39]];
const word: CodePointSet = codePoints([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const space: CodePointSet = codePointsOf(" \t\n\r\f\v");

const UNICODE_WORD = ["Alphabetic", "M", "Nd", "Pc", "Join_Control"];

const posix: Record<string, string> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7f",
  blank: " \\t",
  cntrl: "\\x00-\\x1f\\x7f",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\s",
  upper: "A-Z",
  word: "\\w",
  xdigit: "A-Fa-f0-9",
};

/** d D w W s S; else null. `wide`: every character that some dialect includes, for sets that are then excluded. */
export function perlClass(letter: string, wide = false): CodePointSet | null {
  switch (letter) {
    case "d":
      return wide ? unionSets(DIGIT, unicodeProperty("Nd")!) : DIGIT;
    case "w":
      return wide ? unionSets(word, ...UNICODE_WORD.map((name) => unicodeProperty(name)!)) : word;
    case "s":
      return wide ? unionSets(space, unicodeProperty("White_Space")!, [[0xfeff, 0xfeff]]) : space;
    case "D":
    case "W":
    case "S":
      return complementSet(perlClass(letter.toLowerCase(), !wide)!);
    default:
      return null;
  }
}

export function posixClass(name: string): CodePointSet | null {
  const body = Object.hasOwn(posix, name) ? posix[name] : undefined;
  if (body === undefined) return null;
  const pattern = new RegExp(`[${body}]`);
  const members: [number, number][] = [];
  for (let point = 0; point < 0x80; point++) {
    if (pattern.test(String.fromCharCode(point))) members.push([point, point]);
  }
  return codePoints(members);
}

/** What `.` matches: everything but the line ends of any dialect (`wide`: of all dialects). With `all`, every character. */
export function dot(all: boolean, wide = false): CodePointSet {
  return all ? ANY_CODE_POINT : subtractSets(ANY_CODE_POINT, codePointsOf(wide ? "\n" : "\n\r\u2028\u2029"));
}

const PROPERTIES = new Map<string, CodePointSet | null>();

/** \p{name}: general categories, scripts (Script=Greek or Greek) and binary properties; null = unknown. */
function unicodeProperty(name: string): CodePointSet | null {
  const known = PROPERTIES.get(name);
  if (known !== undefined) return known;
  const set = scanProperty(name);
  PROPERTIES.set(name, set);
  return set;
}

function scanProperty(name: string): CodePointSet | null {
  if (!/^[A-Za-z0-9_]+(=[A-Za-z0-9_]+)?$/.test(name)) return null;
  const pattern = compiled(name) ?? compiled(`Script=${name}`);
  if (!pattern) return null;
  const ranges: [number, number][] = [];
  for (const [low, high] of ANY_CODE_POINT) {
    for (let point = low; point <= high; point++) {
      if (!pattern.test(String.fromCodePoint(point))) continue;
      const last = ranges.at(-1);
      if (last && last[1] === point - 1) last[1] = point;
      else ranges.push([point, point]);
    }
  }
  return codePoints(ranges);
}

function compiled(name: string): RegExp | null {
  try {
    return new RegExp(`^\\p{${name}}$`, "u");
  } catch {
    return null; // there is no such property
  }
}

let variants: Map<number, number[]> | null = null;

/** The set together with every upper- and lower-case form of its members. */
export function ignoringCase(set: CodePointSet): CodePointSet {
  variants ??= caseVariants();
  const added: [number, number][] = [];
  for (const [point, others] of variants) {
    if (set.some(([low, high]) => low <= point && point <= high)) {
      for (const other of others) added.push([other, other]);
    }
  }
  return unionSets(set, codePoints(added));
}

function caseVariants(): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  const add = (from: number, to: number): void => {
    groups.set(from, [...(groups.get(from) ?? []), to]);
  };
  for (let point = 0x41; point < 0x1e944; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const char = String.fromCodePoint(point);
    for (const other of [char.toLowerCase(), char.toUpperCase()]) {
      const [only, ...rest] = Array.from(other);
      if (other === char || rest.length > 0 || only === undefined) continue;
      // Only pairs that fold back to each other ignore case in every dialect.
      if (only.toLowerCase() !== char.toLowerCase() && only.toUpperCase() !== char.toUpperCase()) continue;
      add(point, only.codePointAt(0)!);
      add(only.codePointAt(0)!, point);
    }
  }
  return groups;
}

export function requireUnicodeProperty(name: string, at: (message: string) => GrammarError): CodePointSet {
  const set = unicodeProperty(name);
  if (!set) throw at(`unknown Unicode property \\p{${name}}`);
  return set;
}

// Where anchors and word boundaries hold. Dialects disagree on whether letters beyond ASCII belong to words, so such
// letters are a kind of their own.

/** A character beside an assertion: part of a word in all dialects, in some, or in none. The text's edges are "other". */
export type Neighbour = "word" | "foreign" | "other";

const plainWord = perlClass("w")!;
let foreign: CodePointSet | null = null;

/** The characters of the kinds "word" and "foreign". */
export function neighbourSets(): readonly CodePointSet[] {
  foreign ??= subtractSets(perlClass("w", true)!, plainWord);
  return [plainWord, foreign];
}

export function neighbourOf(point: number): Neighbour {
  const [, beyond] = neighbourSets();
  return includesPoint(plainWord, point) ? "word" : includesPoint(beyond!, point) ? "foreign" : "other";
}

export function isBoundary({ asserts }: Assertion): boolean {
  return asserts === "boundary" || asserts === "inside";
}

/** `after` is null at the end of the text. */
export function holds(assertion: Assertion, atStart: boolean, before: Neighbour, after: Neighbour | null): boolean {
  const { asserts, wide } = assertion;
  if (asserts === "start") return atStart;
  if (asserts === "end") return after === null;
  const between = (isWord: (neighbour: Neighbour) => boolean): boolean =>
    (isWord(before) !== isWord(after ?? "other")) === (asserts === "boundary");
  const inAscii = between((neighbour) => neighbour === "word");
  const inUnicode = between((neighbour) => neighbour !== "other");
  return wide ? inAscii || inUnicode : inAscii && inUnicode;
}

export function hasAssertion(expression: Expression): boolean {
  switch (expression.kind) {
    case "assertion":
      return true;
    case "sequence":
      return expression.parts.some(hasAssertion);
    case "choice":
      return expression.options.some(hasAssertion);
    case "repeat":
      return hasAssertion(expression.body);
    default:
      return false;
  }
}
