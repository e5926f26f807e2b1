// Equality of JSON values as defined for enum, const and uniqueItems.

import { isObject, type JsonValue } from "./keywords.ts";

/** Deep equality. The order of object keys does not matter. */
export function sameJson(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]!));
  }
  if (isObject(a)) {
    if (!isObject(b)) return false;
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key]!, b[key]!))
    );
  }
  return a === b;
}

/** Equal values, and only those, give the same text. */
export function canonicalText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key]!)}`).join(",")}}`;
}

export function distinctJson(values: readonly JsonValue[]): JsonValue[] {
  return [...new Map(values.map((value) => [canonicalText(value), value])).values()];
}
