// Everything that one alternative of a schema demands at once, with references followed and allOf merged. Demands on one
// type do not affect values of other types.
import { canonicalText, type JsonValue, type Schema, type SchemaObject } from "../keywords.ts";
import type { Formula } from "./formula.ts";

export type TypeName = "object" | "array" | "string" | "number" | "boolean" | "null";
export const ALL_TYPES: readonly TypeName[] = ["object", "array", "string", "number", "boolean", "null"];

export interface Bound {
  value: number;
  exclusive: boolean;
}

/** Sibling properties, patternProperties and additionalProperties. The last depends on the other two. */
export interface Layer {
  readonly properties: { readonly [name: string]: Schema };
  readonly patterns: readonly (readonly [pattern: string, schema: Schema])[];
  /** null if not mentioned: anything is allowed. */
  readonly additional: Schema | null;
  /** Inside a negation, which does not count as evaluating properties. */
  readonly silent?: boolean;
}

export interface Tuple {
  readonly prefix: readonly Schema[];
  /** null if not mentioned: anything is allowed. */
  readonly rest: Schema | null;
  readonly silent?: boolean;
}

export interface Contains {
  readonly schema: Schema;
  readonly min: number;
  readonly max: number | null;
  /** Inside a negation, which does not count as evaluating items. */
  readonly silent?: boolean;
}

/** Some member whose name and value satisfy these schemas. */
export interface SomeMember {
  readonly names: Schema;
  readonly schema: Schema;
}

export interface Conjunction {
  /** null if not mentioned. */
  readonly types: readonly TypeName[] | null;
  /** Types that the other keywords apply to. */
  readonly spoken: readonly TypeName[];
  /** Values from enum and const; null if not mentioned. */
  readonly listed: readonly JsonValue[] | null;
  readonly excluded: readonly JsonValue[];
  readonly integer: boolean;
  readonly low: Bound | null;
  readonly high: Bound | null;
  readonly divisors: readonly number[];
  readonly notDivisors: readonly number[];
  readonly patterns: readonly string[];
  readonly notPatterns: readonly string[];
  readonly formats: readonly string[];
  readonly minLength: number;
  readonly maxLength: number | null;
  readonly tuples: readonly Tuple[];
  readonly contains: readonly Contains[];
  readonly unique: boolean;
  readonly minItems: number;
  readonly maxItems: number | null;
  readonly layers: readonly Layer[];
  readonly names: readonly Schema[];
  readonly some: readonly SomeMember[];
  readonly required: readonly string[];
  readonly conditions: readonly Formula[];
  readonly minProperties: number;
  readonly maxProperties: number | null;
}

export const anything: Conjunction = {
  types: null,
  spoken: [],
  listed: null,
  excluded: [],
  integer: false,
  low: null,
  high: null,
  divisors: [],
  notDivisors: [],
  patterns: [],
  notPatterns: [],
  formats: [],
  minLength: 0,
  maxLength: null,
  tuples: [],
  contains: [],
  unique: false,
  minItems: 0,
  maxItems: null,
  layers: [],
  names: [],
  some: [],
  required: [],
  conditions: [],
  minProperties: 0,
  maxProperties: null,
};

/** Demands both. Returns a string with the reason if nothing can satisfy both. */
export function conjoin(a: Conjunction, b: Conjunction): Conjunction | string {
  if (a === anything) return b;
  if (b === anything) return a;
  const types = a.types && b.types ? a.types.filter((type) => b.types!.includes(type)) : (a.types ?? b.types);
  if (types?.length === 0) return "the combined schemas have no type in common";
  const listed = bothListed(a.listed, b.listed);
  if (typeof listed === "string") return listed;
  return {
    types,
    spoken: union(a.spoken, b.spoken),
    listed,
    excluded: [...a.excluded, ...b.excluded],
    integer: a.integer || b.integer,
    low: tighter(a.low, b.low, 1),
    high: tighter(a.high, b.high, -1),
    divisors: union(a.divisors, b.divisors),
    notDivisors: union(a.notDivisors, b.notDivisors),
    patterns: union(a.patterns, b.patterns),
    notPatterns: union(a.notPatterns, b.notPatterns),
    formats: union(a.formats, b.formats),
    minLength: Math.max(a.minLength, b.minLength),
    maxLength: least(a.maxLength, b.maxLength),
    tuples: union(a.tuples, b.tuples),
    contains: union(a.contains, b.contains),
    unique: a.unique || b.unique,
    minItems: Math.max(a.minItems, b.minItems),
    maxItems: least(a.maxItems, b.maxItems),
    layers: union(a.layers, b.layers),
    names: union(a.names, b.names),
    some: union(a.some, b.some),
    required: union(a.required, b.required),
    conditions: [...a.conditions, ...b.conditions],
    minProperties: Math.max(a.minProperties, b.minProperties),
    maxProperties: least(a.maxProperties, b.maxProperties),
  };
}

function bothListed(
  a: readonly JsonValue[] | null,
  b: readonly JsonValue[] | null,
): readonly JsonValue[] | null | string {
  if (a === null || b === null) return a ?? b;
  const known = new Set(b.map(canonicalText));
  const common = a.filter((value) => known.has(canonicalText(value)));
  if (common.length > 0) return common;
  return a.length === 1 && b.length === 1
    ? "the combined schemas demand two different constants"
    : "the combined schemas list no value in common";
}

/** The stricter of two bounds. `direction` is 1 for lower bounds and -1 for upper bounds. */
export function tighter(a: Bound | null, b: Bound | null, direction: 1 | -1): Bound | null {
  if (a === null || b === null) return a ?? b;
  if (a.value === b.value) return a.exclusive ? a : b;
  return (a.value - b.value) * direction > 0 ? a : b;
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

function union<T>(a: readonly T[], b: readonly T[]): readonly T[] {
  if (a.length === 0) return b;
  return b.length === 0 ? a : [...new Set([...a, ...b])];
}

/** The types to generate: the declared ones, else those the other keywords apply to, else all. */
export function generatedTypes({ types, spoken }: Conjunction): readonly TypeName[] {
  return types ?? (spoken.length > 0 ? ALL_TYPES.filter((type) => spoken.includes(type)) : ALL_TYPES);
}

// The order in which the properties of a combined schema come. Those of allOf and $ref come where these keywords stand,
// before or after the schema's own. Those of alternatives come last: they often only refine the others.

/** `own` are the layers of the schema's own properties. */
export function inDeclaredOrder(
  cases: readonly Conjunction[],
  keywords: SchemaObject,
  own: readonly Layer[],
  layersOf: (part: Schema) => readonly Layer[],
  target: Schema | null,
): readonly Conjunction[] {
  const ranks = new Map<Layer, number>();
  for (const [keyword, value] of Object.entries(keywords)) {
    for (const layer of keyword === "properties" ? own : partsOf(keyword, value, target).flatMap(layersOf)) {
      if (!ranks.has(layer)) ranks.set(layer, ranks.size);
    }
  }
  const rankOf = (layer: Layer): number => ranks.get(layer) ?? ranks.size;
  return cases.map((each) => ({ ...each, layers: [...each.layers].sort((a, b) => rankOf(a) - rankOf(b)) }));
}

function partsOf(keyword: string, value: JsonValue, target: Schema | null): readonly Schema[] {
  if (keyword === "allOf") return value as Schema[];
  return keyword === "$ref" && target !== null ? [target] : [];
}
