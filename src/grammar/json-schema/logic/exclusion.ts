// Finds out whether two alternatives exclude each other, and what keeps an object out of another alternative. Both look
// at members only one level deep. The automaton settles the rest.

import type { SchemaDocument } from "../document.ts";
import type { JsonValue, Schema } from "../keywords.ts";
import { canonicalText } from "../same-json.ts";
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
