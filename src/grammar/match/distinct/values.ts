// Finished JSON values in a form that can be compared, and the questions asked about a list of them.

import { createHash } from "node:crypto";

export interface Value {
  /**
   * Equal values, and only those, have the same key. A string's key is a quote and its UTF-8 bytes, one per character. A
   * number's key is that of its double, so 1, 1.0 and 10e-1 are equal. Long keys of arrays and objects are hashed.
   */
  readonly key: string;
  readonly items: readonly Value[];
  readonly members: ReadonlyMap<string, Value>;
}

export const NO_ITEMS: readonly Value[] = [];
export const NO_MEMBERS: ReadonlyMap<string, Value> = new Map();
const LONGEST_KEY = 200;
/** Shorter lists are searched as they are. */
const INDEXED = 32;

export function scalar(key: string): Value {
  return { key, items: NO_ITEMS, members: NO_MEMBERS };
}

/** A number, true, false or null, by its text. */
export function bareValue(text: string): Value {
  return scalar(isNumeric(text) ? String(Number(text)) : text);
}

export function listValue(items: readonly Value[]): Value {
  return { key: shortened("[", items.map(framed)), items, members: NO_MEMBERS };
}

export function objectValue(members: ReadonlyMap<string, Value>): Value {
  const parts = [...members.keys()].sort().map((name) => `${name.length}:${name}${framed(members.get(name)!)}`);
  return { key: shortened("{", parts), items: NO_ITEMS, members };
}

function framed({ key }: Value): string {
  return `${key.length}:${key}`;
}

function shortened(start: string, parts: readonly string[]): string {
  const key = start + parts.join("");
  return key.length <= LONGEST_KEY ? key : `${start}#${createHash("sha256").update(key).digest("base64")}`;
}

export function isNumeric(key: string): boolean {
  const first = key.charCodeAt(0);
  // Infinity is the double of a number too large for one.
  return (first >= 0x30 && first <= 0x39) || first === 0x2d || key === "Infinity";
}

interface Index {
  /** By key, ascending. */
  readonly sorted: readonly Value[];
  readonly numeric: boolean;
  readonly known: ReadonlySet<string>;
}

const INDEXES = new WeakMap<readonly Value[], Index>();

function indexOf(values: readonly Value[]): Index {
  let index = INDEXES.get(values);
  if (index === undefined) {
    const sorted = [...values].sort((a, b) => (a.key < b.key ? -1 : 1));
    const known = new Set(values.map(({ key }) => key));
    index = { sorted, numeric: values.some(({ key }) => isNumeric(key)), known };
    INDEXES.set(values, index);
  }
  return index;
}

export function includesKey(values: readonly Value[], key: string): boolean {
  if (values.length <= INDEXED) return values.some((value) => value.key === key);
  return indexOf(values).known.has(key);
}

export function includesNumber(values: readonly Value[]): boolean {
  return values.length <= INDEXED ? values.some(({ key }) => isNumeric(key)) : indexOf(values).numeric;
}

/** The values whose key begins like this. */
export function beginning(values: readonly Value[], start: string): readonly Value[] {
  if (values.length === 0) return values;
  if (values.length <= INDEXED) return values.filter(({ key }) => key.startsWith(start));
  const { sorted } = indexOf(values);
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.key < start) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < sorted.length && sorted[end]!.key.startsWith(start)) end++;
  return end - low === values.length ? values : sorted.slice(low, end);
}
