// Coupled comparison over many prompts: two models asked the same with the same seeds draw the same random numbers, so every
// difference is the model's.
import { firstDifference, type Token } from "./tokens.ts";

export interface Side {
  text: string;
  tokens: readonly Token[];
}

export interface Pair {
  prompt: string;
  a: Side | null;
  b: Side | null;
  error: string | null;
}

export function promptsIn(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Null while a side is missing or if both are the same. */
export function differenceOf({ a, b }: Pair): number | null {
  return a === null || b === null ? null : firstDifference(a.tokens, b.tokens);
}

export interface Summary {
  done: number;
  differing: number;
  /** How many answers of each side match the pattern, and how many only one side's; null without a pattern. */
  right: { a: number; b: number; onlyA: number; onlyB: number } | null;
}

/** `pattern`: what a right answer contains; "" is none. */
export function summaryOf(pairs: readonly Pair[], pattern: string): Summary {
  const done = pairs.filter(({ a, b }) => a !== null && b !== null);
  const differing = done.filter((pair) => differenceOf(pair) !== null).length;
  const matcher = matcherOf(pattern);
  if (matcher === null) return { done: done.length, differing, right: null };
  const marks = done.map(({ a, b }) => ({ a: matcher(a!.text), b: matcher(b!.text) }));
  const how = (wanted: (mark: { a: boolean; b: boolean }) => boolean) => marks.filter(wanted).length;
  const right = {
    a: how(({ a }) => a),
    b: how(({ b }) => b),
    onlyA: how(({ a, b }) => a && !b),
    onlyB: how(({ a, b }) => b && !a),
  };
  return { done: done.length, differing, right };
}

/** A regular expression, or a plain text if it is none. */
export function matcherOf(pattern: string): ((text: string) => boolean) | null {
  if (pattern === "") return null;
  try {
    const expression = new RegExp(pattern, "iu");
    return (text) => expression.test(text);
  } catch {
    return (text) => text.includes(pattern);
  }
}
