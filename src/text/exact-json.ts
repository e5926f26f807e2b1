// JSON text -> plain values that keep how numbers were written where a double forgets it: 1.0 is not 1 in a prompt, and
// the digits of 1234567890123456789 are somebody's id. Such a number becomes an object with one key (JSON-safe: values
// travel to other processes); template/values.ts makes a number of it again.

import { stringEnd } from "../json-string.ts";

/** Key of the object that stands for a number; its value is the number as it was written. */
export const exactNumberKey = "\u0000number";

export function parseExactJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const marked = markNumbers(text);
  return marked === null ? value : JSON.parse(marked);
}

/** The other way round. Inside strings nothing looks like our objects: their quotes are escaped there. */
export function writeExactJson(value: unknown): string {
  return JSON.stringify(value).replace(/\{"\\u0000number":"(-?\d[\d.eE+-]*)"\}/g, "$1");
}

const before = `{${JSON.stringify(exactNumberKey)}:"`;

/** Valid JSON with the numbers replaced that need it; null: none do. */
function markNumbers(text: string): string | null {
  const parts: string[] = [];
  let copied = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') i = stringEnd(text, i);
    if (char !== "-" && !isDigit(char)) continue;
    const start = i;
    while (i + 1 < text.length && isOfNumber(text[i + 1]!)) i++;
    const literal = text.slice(start, i + 1);
    if (!isForgotten(literal)) continue;
    parts.push(text.slice(copied, start), before, literal, '"}');
    copied = i + 1;
  }
  return copied === 0 ? null : parts.join("") + text.slice(copied);
}

function isDigit(char: string): boolean {
  return char >= "0" && char <= "9";
}

function isOfNumber(char: string): boolean {
  return isDigit(char) || char === "." || char === "e" || char === "E" || char === "+" || char === "-";
}

/** A fraction or exponent that is a whole number, or more digits than a double has. */
function isForgotten(literal: string): boolean {
  const value = Number(literal);
  return /[.eE]/.test(literal) ? Number.isInteger(value) : !Number.isSafeInteger(value);
}
