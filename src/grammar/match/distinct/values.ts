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

const NO_ITEMS: readonly Value[] = [];
export const NO_MEMBERS: ReadonlyMap<string, Value> = new Map();
const LONGEST_KEY = 200;
/** Shorter lists are searched as they are. */
const INDEXED = 8;

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

function isNumeric(key: string): boolean {
  const first = key.charCodeAt(0);
  // Infinity is the double of a number too large for one.
  return (first >= 0x30 && first <= 0x39) || first === 0x2d || key === "Infinity";
}

interface Index {
  /** Ascending. */
  readonly keys: readonly string[];
  readonly numeric: boolean;
  readonly known: ReadonlySet<string>;
}

const INDEXES = new WeakMap<readonly Value[], Index>();

function indexOf(values: readonly Value[]): Index {
  let index = INDEXES.get(values);
  if (index === undefined) {
    const keys = values.map(({ key }) => key).sort();
    index = { keys, numeric: keys.some(isNumeric), known: new Set(keys) };
    INDEXES.set(values, index);
  }
  return index;
}

export function includesKey(values: readonly Value[], key: string): boolean {
  if (values.length <= INDEXED) return values.some((value) => value.key === key);
  return indexOf(values).known.has(key);
}

/** Whether one of the values is a scalar whose text may begin like this: a quote and bytes, or part of a bare word. */
export function someBegin(values: readonly Value[], start: string): boolean {
  if (values.length === 0) return false;
  // Numbers have many spellings, so any may become any other.
  if (isNumeric(start))
    return values.length <= INDEXED ? values.some(({ key }) => isNumeric(key)) : indexOf(values).numeric;
  if (values.length <= INDEXED) return values.some(({ key }) => key.startsWith(start));
  const { keys } = indexOf(values);
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle]! < start) low = middle + 1;
    else high = middle;
  }
  return low < keys.length && keys[low]!.startsWith(start);
}
