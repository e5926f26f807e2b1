// The conjunction of two schemas as one schema, for allOf and for keywords beside $ref, anyOf and oneOf. Both sides were
// checked and hold enforced keywords only. What cannot be merged exactly is refused.

import { Contradiction } from "../grammar-error.ts";
import { isObject, type JsonValue, mergedPatterns, type Schema, type SchemaObject, schemaError } from "./keywords.ts";

export function mergeSchemas(a: SchemaObject, b: SchemaObject, path: string): SchemaObject {
  // Which of its keys a side calls additional would depend on the patterns of that side alone.
  for (const [side, other] of [[a, b] as const, [b, a] as const]) {
    if (side.patternProperties === undefined || sameJson(a, b)) continue;
    if (["properties", "patternProperties", "additionalProperties"].some((keyword) => other[keyword] !== undefined))
      throw schemaError('the schema keyword "patternProperties" cannot be combined with another object schema', path);
  }
  const out: Record<string, JsonValue> = { ...a };
  for (const [keyword, value] of Object.entries(b)) {
    const other = a[keyword];
    out[keyword] = other === undefined ? value : mergeKeyword(keyword, other, value, path);
  }
  if (a.properties !== undefined || b.properties !== undefined) out.properties = mergeProperties(a, b);
  if (speaksOfItems(a) && speaksOfItems(b)) Object.assign(out, mergeItems(a, b, path));
  return out;
}

function mergeKeyword(keyword: string, a: JsonValue, b: JsonValue, path: string): JsonValue {
  if (sameJson(a, b)) return a;
  switch (keyword) {
    case "type":
      return intersectTypes(typeList(a), typeList(b), path);
    case "const":
      throw new Contradiction(`the combined schemas demand two different constants, at ${path}`);
    case "enum": {
      const common = (a as JsonValue[]).filter((value) => (b as JsonValue[]).some((other) => sameJson(value, other)));
      if (common.length === 0) throw new Contradiction(`the combined schemas list no value in common, at ${path}`);
      return common;
    }
    case "required":
      return [...new Set([...(a as string[]), ...(b as string[])])];
    case "minimum":
    case "exclusiveMinimum":
    case "minLength":
    case "minItems":
    case "minProperties":
      return Math.max(a as number, b as number);
    case "maximum":
    case "exclusiveMaximum":
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return Math.min(a as number, b as number);
    case "additionalProperties":
    case "propertyNames":
      return both(a as Schema, b as Schema);
    case "nullable":
      return false;
    case "properties":
    case "items":
    case "prefixItems":
    case "additionalItems":
      return a; // replaced by mergeProperties and mergeItems
    case "allOf":
      return [...(a as JsonValue[]), ...(b as JsonValue[])];
    case "pattern":
      return mergedPatterns([...new Set([a, b].flat())] as string[]);
    case "anyOf":
      if ((a as JsonValue[]).length * (b as JsonValue[]).length <= 64) {
        return (a as Schema[]).flatMap((x) => (b as Schema[]).map((y) => both(x, y)));
      }
      break;
    default:
      break;
  }
  throw schemaError(`two different values of the schema keyword "${keyword}" cannot be combined`, path);
}

/** A property one side does not declare falls under that side's additionalProperties. */
function mergeProperties(a: SchemaObject, b: SchemaObject): JsonValue {
  const left = (a.properties ?? {}) as Record<string, Schema>;
  const right = (b.properties ?? {}) as Record<string, Schema>;
  const out: [string, JsonValue][] = [];
  for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const x = Object.hasOwn(left, name) ? left[name]! : ((a.additionalProperties ?? true) as Schema);
    const y = Object.hasOwn(right, name) ? right[name]! : ((b.additionalProperties ?? true) as Schema);
    out.push([name, both(x, y)]);
  }
  return Object.fromEntries(out);
}

function speaksOfItems(schema: SchemaObject): boolean {
  return schema.items !== undefined || schema.prefixItems !== undefined;
}

/** Position by position: a prefix on one side meets the other side's schema for that position. */
function mergeItems(a: SchemaObject, b: SchemaObject, path: string): { [key: string]: JsonValue } {
  if (Array.isArray(a.items) || Array.isArray(b.items)) {
    throw schemaError('an array of schemas under the keyword "items" cannot be combined; use "prefixItems"', path);
  }
  const left = (a.prefixItems ?? []) as Schema[];
  const right = (b.prefixItems ?? []) as Schema[];
  const restLeft = (a.items ?? true) as Schema;
  const restRight = (b.items ?? true) as Schema;
  const length = Math.max(left.length, right.length);
  const prefixItems = Array.from({ length }, (_, i) => both(left[i] ?? restLeft, right[i] ?? restRight));
  const merged: Record<string, JsonValue> = {};
  if (length > 0) merged.prefixItems = prefixItems as JsonValue[];
  if (a.items !== undefined || b.items !== undefined) merged.items = both(restLeft, restRight) as JsonValue;
  return merged;
}

export function both(a: Schema, b: Schema): Schema {
  if (a === false || b === false) return false;
  if (a === true) return b;
  if (b === true || sameJson(a, b)) return a;
  return { allOf: [a, b] };
}

export function typeList(type: JsonValue): string[] {
  return (Array.isArray(type) ? type : [type]) as string[];
}

function intersectTypes(a: readonly string[], b: readonly string[], path: string): JsonValue {
  const out = new Set<string>();
  for (const type of a) {
    if (b.includes(type)) out.add(type);
    else if (type === "integer" && b.includes("number")) out.add(type);
    else if (type === "number" && b.includes("integer")) out.add("integer");
  }
  if (out.size === 0) throw new Contradiction(`the combined schemas have no type in common, at ${path}`);
  return [...out];
}

/** Deep equality of JSON values; object keys in any order. */
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

export function distinctJson(values: readonly JsonValue[]): JsonValue[] {
  return values.filter((value, index) => values.findIndex((other) => sameJson(value, other)) === index);
}
