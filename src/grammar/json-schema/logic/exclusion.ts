// Finds out whether two alternatives exclude each other, and what keeps an object out of another alternative. Both look
// at members only one level deep. The automaton settles the rest.

import type { SchemaDocument } from "../document.ts";
import { canonicalText, isObject, type JsonValue, type Schema } from "../keywords.ts";
import { type Conjunction, generatedTypes, type Layer } from "./conjunction.ts";
import { listedValues } from "./demands.ts";
import { type Formula, has, not, or } from "./formula.ts";

/** The number of differing members whose values one formula can keep apart. */
const MAX_VALUES = 4;
const MAX_HOPS = 10;

/** Why no value satisfies the conjunction, if that is obvious. */
export function clash(document: SchemaDocument, all: Conjunction): string | null {
  if (all.types === null || all.types.join() !== "object" || all.layers.length === 0) return null;
  for (const name of all.required) {
    let common: Set<string> | null = null;
    let types: readonly string[] | null = null;
    for (const layer of all.layers) {
      const schema = memberSchema(layer, name);
      if (schema === false) return `the required property ${quoted(name)} is neither declared nor allowed`;
      const { values, types: own } = plainDemands(document, schema);
      if (own !== null) types = types === null ? own : types.filter((type) => own.includes(type));
      if (types?.length === 0) return `the required property ${quoted(name)} has no possible type`;
      if (values === null) continue;
      const keys: string[] = values.map(canonicalText);
      common = new Set(common === null ? keys : keys.filter((key) => common!.has(key)));
      if (common.size === 0) return `the required property ${quoted(name)} has no possible value`;
    }
  }
  return null;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 40));
}

/** The schema a layer applies to a member; true if that depends on its patterns. */
function memberSchema({ properties, patterns, additional }: Layer, name: string): Schema {
  if (Object.hasOwn(properties, name)) return properties[name]!;
  return patterns.length > 0 ? true : (additional ?? true);
}

/** Values and types that a schema lists directly or through plain references. */
function plainDemands(
  document: SchemaDocument,
  schema: Schema,
  hops = 0,
): { values: readonly JsonValue[] | null; types: readonly string[] | null } {
  const nothing = { values: null, types: null };
  if (typeof schema === "boolean" || hops > MAX_HOPS) return nothing;
  const keywords = document.keywords(schema, "#");
  const values = listedValues(keywords);
  if (values !== null || keywords.type !== undefined) {
    const names =
      keywords.type === undefined || keywords.nullable === true ? null : ([keywords.type].flat() as string[]);
    return { values, types: names?.map((name) => (name === "integer" ? "number" : name)) ?? null };
  }
  if (keywords.$ref === undefined) return nothing;
  return plainDemands(document, document.resolve(schema, "$ref", "#"), hops + 1);
}

/**
 * For each of many alternatives, the others that may share a value with it. Constants tell alternatives apart: their
 * own, or those of a property that all objects must have, such as the tag of a union. So does a property that one must
 * have and another must not. So a long union needs no comparison of each alternative with each other.
 */
export function rivalsOf(
  document: SchemaDocument,
  alternatives: readonly (readonly Conjunction[])[],
): (index: number) => readonly number[] {
  const tag = commonTag(document, alternatives.flat());
  const byKey = new Map<string, number[]>();
  const anywhere: number[] = [];
  const keys = alternatives.map((cases, index) => {
    const own = keysOf(document, cases, tag);
    if (own === null) anywhere.push(index);
    for (const key of own ?? []) {
      const holders = byKey.get(key);
      if (holders) holders.push(index);
      else byKey.set(key, [index]);
    }
    return own;
  });
  const allowing = alternativesByName(alternatives);
  return (index) => {
    const own = keys[index];
    const rivals = own ? [...own].flatMap((key) => byKey.get(key)!).concat(anywhere) : allowing(alternatives[index]!);
    return [...new Set(rivals)].filter((other) => other !== index).sort((a, b) => a - b);
  };
}

/** Finds the alternatives that allow the rarest of the names that some alternative requires. */
function alternativesByName(
  alternatives: readonly (readonly Conjunction[])[],
): (cases: readonly Conjunction[]) => readonly number[] {
  /** Alternatives that allow only certain names, by these. */
  const closed = new Map<string, number[]>();
  const open: number[] = [];
  for (const [index, cases] of alternatives.entries()) {
    const names = cases.map(onlyNames);
    if (names.includes(null)) open.push(index);
    for (const name of new Set(names.flatMap((each) => each ?? []))) {
      const holders = closed.get(name);
      if (holders) holders.push(index);
      else closed.set(name, [index]);
    }
  }
  return (cases) => {
    const required = (cases[0]?.required ?? []).filter((name) => cases.every((each) => isRequired(each, name)));
    const holders = required.map((name) => closed.get(name) ?? []).sort((a, b) => a.length - b.length);
    return holders[0] === undefined ? [...alternatives.keys()] : [...open, ...holders[0]];
  };
}

function isRequired({ types, required }: Conjunction, name: string): boolean {
  return types?.join() === "object" && required.includes(name);
}

/** The names that objects may have; null = any, or the values need not be objects. */
function onlyNames({ types, listed, layers }: Conjunction): readonly string[] | null {
  const layer = layers.find(({ additional, patterns }) => additional === false && patterns.length === 0);
  return layer === undefined || listed !== null || types?.join() !== "object" ? null : Object.keys(layer.properties);
}

/** A property that every object must have, with a constant in each alternative; null = there is none. */
function commonTag(document: SchemaDocument, cases: readonly Conjunction[]): string | null {
  const objects = cases.filter(({ listed, types }) => listed === null && types?.join() === "object");
  const [first, ...others] = objects;
  if (first === undefined) return null;
  const tags = first.required.filter((name) => constantsOf(document, first, name) !== null);
  return tags.find((name) => others.every((each) => constantsOf(document, each, name) !== null)) ?? null;
}

/** What the alternatives' values have in common with no value that has other keys; null = unknown. */
function keysOf(document: SchemaDocument, cases: readonly Conjunction[], tag: string | null): Set<string> | null {
  const keys = new Set<string>();
  for (const each of cases) {
    const constants = tag !== null && each.types?.join() === "object" ? constantsOf(document, each, tag) : null;
    if (each.listed === null && constants === null) return null;
    for (const value of each.listed ?? []) {
      const tagged = tag !== null && isObject(value) && Object.hasOwn(value, tag);
      keys.add(tagged ? `tag ${canonicalText(value[tag]!)}` : `value ${canonicalText(value)}`);
    }
    if (each.listed === null) for (const value of constants!) keys.add(`tag ${canonicalText(value)}`);
  }
  return keys;
}

/** The constants that a required property may have; null if it is not required or not limited to constants. */
function constantsOf(
  document: SchemaDocument,
  { layers, required }: Conjunction,
  name: string,
): readonly JsonValue[] | null {
  if (!required.includes(name)) return null;
  for (const layer of layers) {
    const { values } = plainDemands(document, memberSchema(layer, name));
    if (values !== null) return values;
  }
  return null;
}

interface Opposites {
  readonly document: SchemaDocument;
  opposite(schema: Schema): Schema;
}

/** A condition that keeps an object of the first alternative out of the second; null if none was found. */
export function differentFrom(schemas: Opposites, one: Conjunction, other: Conjunction): Formula | null {
  if (generatedTypes(one).join() !== "object") return null;
  const known = new Set(one.layers.flatMap((layer) => Object.keys(layer.properties)).concat(one.required));
  const ways: Formula[] = other.required.filter((name) => !one.required.includes(name)).map((name) => not(has(name)));
  ways.push(...other.conditions.map(not));
  let values = 0;
  for (const layer of other.layers) {
    if (layer.additional === false && layer.patterns.length === 0) {
      ways.push(...[...known].filter((name) => !Object.hasOwn(layer.properties, name)).map((name) => has(name)));
    }
    for (const [name, schema] of Object.entries(layer.properties)) {
      const own = one.layers.map((each) => each.properties[name]).find((each) => each !== undefined);
      if (own === schema || !known.has(name) || values >= MAX_VALUES) continue;
      const plain = plainDemands(schemas.document, schema);
      if (plain.values === null && plain.types === null) continue;
      values++;
      ways.push(has(name, schemas.opposite(schema)));
    }
  }
  const condition = or(...ways);
  return condition === false ? null : condition;
}
