// uniqueItems: each value at most once, in any order, as a graph over the sets of values already written.

import { choice, type Expression, empty, type GraphEdge, sequence, text } from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import { type JsonValue, type Schema, schemaError } from "../keywords.ts";
import type { Conjunction } from "../logic/conjunction.ts";
import { distinctJson } from "../same-json.ts";
import type { Positions } from "./positions.ts";

/** The graph has a node for every set of values, so their number must stay small. */
const MAX_DISTINCT = 8;

export function distinctItems(
  context: SchemaContext,
  all: Conjunction,
  { prefix, rest, min, max }: Positions,
  path: string,
): Expression {
  const json = context.text;
  const values = fewValues(context, rest, `${path}/items`);
  if (values === null || prefix.length > 0 || all.contains.length > 0) {
    throw schemaError(
      `the schema keyword "uniqueItems" is only supported for items from a list of at most ${MAX_DISTINCT} values`,
      path,
    );
  }
  // Several graph nodes use each item, so it is stored once as a rule.
  const items = values.map((value) => json.builder.rule(context.compile({ const: value }, `${path}/items`)));
  const edges: GraphEdge[] = [];
  // Node 0 is the start, with nothing written. Node 1 is the end. The other nodes are sets of values, shifted past them.
  const nodeOf = (set: number): number => (set === 0 ? 0 : set + 1);
  for (let set = 0; set < 2 ** items.length; set++) {
    const count = items.filter((_, index) => set & (1 << index)).length;
    if (count > 0 && count >= min) edges.push({ from: nodeOf(set), to: 1, expression: empty });
    if (max !== null && count >= max) continue;
    for (const [index, item] of items.entries()) {
      if (set & (1 << index)) continue;
      const expression = count === 0 ? item : sequence(json.comma, item);
      edges.push({ from: nodeOf(set), to: nodeOf(set | (1 << index)), expression });
    }
  }
  const options: Expression[] = min === 0 ? [text("[]")] : [];
  if (min <= items.length && items.length > 0) {
    options.push(json.brackets({ kind: "graph", nodes: 2 ** items.length + 1, edges }));
  }
  return options.length === 0 ? context.impossible("too few values for distinct items", path) : choice(...options);
}

/** The values the items may have, if they are listed and few. */
function fewValues(context: SchemaContext, items: Schema, path: string): JsonValue[] | null {
  const values: JsonValue[] = [];
  for (const each of context.cases.of(items, path)) {
    if (each.listed !== null) values.push(...each.listed);
    else if (each.types?.join() === "boolean") values.push(true, false);
    else return null;
  }
  if (values.length > 1000) return null;
  const fitting = distinctJson(values).filter((value) => context.conforms(value, items, path));
  return fitting.length <= MAX_DISTINCT ? fitting : null;
}
