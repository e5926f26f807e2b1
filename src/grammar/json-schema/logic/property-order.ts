// The order in which the properties of a combined schema come. Those of allOf and $ref come where these keywords stand,
// before or after the schema's own. Those of alternatives come last: they often only refine the others.

import type { JsonValue, Schema, SchemaObject } from "../keywords.ts";
import type { Conjunction, Layer } from "./conjunction.ts";

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
