// Parses JSON and keeps numbers as they were written where a double forgets it: 1.0 is not 1 in a prompt, and the digits
// of 1234567890123456789 may be an id. Such a number becomes an object with one key, because values travel to other
// processes as JSON. The template runtime turns it into a number again.

import { isJsonObject, stringEnd } from "./json.ts";

/** Key of the object that stands for a number; its value is the number as it was written. */
export const EXACT_NUMBER_KEY = "\u0000number";

export function parseExactJson(text: string): unknown {
  return JSON.parse(markNumbers(text));
}

/** The inverse. Nothing inside a string looks like our objects, because quotes are escaped there. */
export function writeExactJson(value: unknown): string {
  return JSON.stringify(value).replace(/\{"\\u0000number":"(-?\d[\d.eE+-]*)"\}/g, "$1");
}

/** The value with ordinary numbers. */
export function plainNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainNumbers);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value);
  const [key, written] = entries[0] ?? [];
  if (entries.length === 1 && key === EXACT_NUMBER_KEY && isJsonNumber(written)) return Number(written);
  return Object.fromEntries(entries.map(([name, item]) => [name, plainNumbers(item)]));
}

const before = `{${JSON.stringify(EXACT_NUMBER_KEY)}:"`;

const END_OF_NUMBER = /[^\d.eE+-]/g;

/** A double holds every whole number of so many digits. */
const EXACT_DIGITS = 15;

/** Beyond so many characters a number is not a double, and working out which one it would be takes long. */
const LONGEST_DOUBLE = 1000;

/** Each number is looked at, which takes far longer than reading it. */
export class TooManyNumbers extends Error {
  override name = "TooManyNumbers";
}

/** Numbers that may still be looked at. */
interface Allowance {
  numbers: number;
}

const ANY_NUMBER: Allowance = { numbers: Number.POSITIVE_INFINITY };

/** JSON text with the numbers replaced that need it. Text that is not JSON does not become JSON. */
export function markNumbers(text: string): string {
  return marked(text, ANY_NUMBER);
}

function marked(text: string, left: Allowance): string {
  const parts: string[] = [];
  let copied = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') i = stringEnd(text, i);
    if (char !== "-" && !isDigit(char)) continue;
    if (--left.numbers < 0) throw new TooManyNumbers();
    const start = i;
    END_OF_NUMBER.lastIndex = i + 1;
    const end = END_OF_NUMBER.exec(text)?.index ?? text.length;
    i = end - 1;
    const literal = text.slice(start, end);
    if (literal.length <= EXACT_DIGITS && !/[.eE]/.test(literal)) continue;
    if (!isForgotten(literal)) continue;
    parts.push(text.slice(copied, start), before, literal, '"}');
    copied = i + 1;
  }
  return copied === 0 ? text : parts.join("") + text.slice(copied);
}

/**
 * The same, only in the fields of tools and tool calls that templates print. Strings cannot match: quotes are escaped. Throws if
 * they have more than `most` numbers.
 */
export function markPrintedNumbers(text: string, most: number = Number.POSITIVE_INFINITY): string {
  const left = { numbers: most };
  const printedField = /"(?:parameters|arguments|input_schema|input)"\s*:\s*(?=[{[])/g;
  const parts: string[] = [];
  let copied = 0;
  while (printedField.exec(text) !== null) {
    const start = printedField.lastIndex;
    const end = valueEnd(text, start);
    parts.push(text.slice(copied, start), marked(text.slice(start, end), left));
    copied = end;
    printedField.lastIndex = end;
  }
  return copied === 0 ? text : parts.join("") + text.slice(copied);
}

const BRACKET_OR_QUOTE = /["[\]{}]/g;

/** Index after the object or list that opens at `start`; the end of the text if it never closes. */
function valueEnd(text: string, start: number): number {
  let depth = 0;
  BRACKET_OR_QUOTE.lastIndex = start;
  for (let found = BRACKET_OR_QUOTE.exec(text); found !== null; found = BRACKET_OR_QUOTE.exec(text)) {
    const [char] = found;
    if (char === '"') BRACKET_OR_QUOTE.lastIndex = stringEnd(text, found.index) + 1;
    else if (char === "{" || char === "[") depth++;
    else if (--depth === 0) return found.index + 1;
  }
  return text.length;
}

export function isJsonNumber(text: unknown): text is string {
  return typeof text === "string" && /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);
}

function isDigit(char: string): boolean {
  return char >= "0" && char <= "9";
}

/** A whole number written with a fraction or exponent, or one with more digits than a double holds. */
function isForgotten(literal: string): boolean {
  if (!isJsonNumber(literal)) return false;
  if (literal.length > LONGEST_DOUBLE) return true;
  const value = Number(literal);
  return /[.eE]/.test(literal) ? Number.isInteger(value) : !Number.isSafeInteger(value);
}
