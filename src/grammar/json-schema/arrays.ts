// Array schemas: prefixItems, items, minItems, maxItems, uniqueItems (and the older form, an array of schemas under items).

import {
  choice,
  type Expression,
  empty,
  type GraphEdge,
  isNever,
  never,
  optional,
  repeat,
  sequence,
  text,
} from "../expression.ts";
import { conforms } from "./conforms.ts";
import { listedValues } from "./disjoint.ts";
import { type JsonValue, type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import { distinctJson } from "./merge.ts";
import type { SchemaCompiler } from "./schema-compiler.ts";

/** Longer arrays are never generated where a maximum is given; a minimum beyond it is refused. */
const MAX_COUNTED = 20_000;

export function compileArray(compiler: SchemaCompiler, schema: SchemaObject, path: string): Expression {
  const json = compiler.text;
  const min = (schema.minItems ?? 0) as number;
  const declaredMax = (schema.maxItems ?? null) as number | null;
  if (min > MAX_COUNTED) throw schemaError(`the schema keyword "minItems" is supported up to ${MAX_COUNTED}`, path);
  if (declaredMax !== null && declaredMax < min) throw schemaError('"maxItems" is less than "minItems"', path);
  const max = declaredMax === null ? null : Math.min(declaredMax, MAX_COUNTED);
  if (schema.uniqueItems === true && (max === null || max > 1)) return distinctItems(compiler, schema, path, min, max);
  const { prefix, rest } = itemSchemas(schema, min);
  const heads = prefix.map((item, index) => compiler.compile(item, `${path}/prefixItems/${index}`));
  const tail = rest === false ? never : compiler.compile(rest, `${path}/items`);
  if (heads.length === 0) {
    if (!isNever(tail)) return json.elements(tail, min, max);
    return min === 0 ? text("[]") : never;
  }
  // From the end: what may follow once `count` elements are written.
  let following = remaining(json.comma, tail, heads.length, min, max);
  for (let count = heads.length - 1; count >= 0; count--) {
    if (max !== null && count >= max) {
      following = count >= min ? empty : never;
      continue;
    }
    const element = isNever(heads[count]!)
      ? never
      : sequence(count === 0 ? empty : json.comma, heads[count]!, following);
    following = count === 0 ? element : count >= min ? optional(element) : element;
  }
  const options: Expression[] = [];
  if (min === 0) options.push(text("[]"));
  if (!isNever(following) && max !== 0) options.push(json.brackets(following));
  return choice(...options);
}

/** More would be too many sets of values that may be used up. */
const MAX_DISTINCT = 8;

/** Each value at most once, in any order: a graph over the sets of values written so far. */
function distinctItems(
  compiler: SchemaCompiler,
  schema: SchemaObject,
  path: string,
  min: number,
  max: number | null,
): Expression {
  const json = compiler.text;
  const values = fewValues(compiler, schema, `${path}/items`);
  if (values === null || schema.prefixItems !== undefined) {
    throw schemaError(
      `the schema keyword "uniqueItems" is only supported for items from a list of at most ${MAX_DISTINCT} values`,
      path,
    );
  }
  // Reached from several nodes of the graph, so it is stored once.
  const items = values.map((value) => json.builder.rule(compiler.compile({ const: value }, `${path}/items`)));
  const edges: GraphEdge[] = [];
  // Node 0 is the start, with nothing written, node 1 the end; the others are sets of values, shifted past them.
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
  if (min <= items.length && items.length > 0)
    options.push(json.brackets({ kind: "graph", nodes: 2 ** items.length + 1, edges }));
  return choice(...options);
}

/** The values that the items may have, where they are listed and few. */
function fewValues(compiler: SchemaCompiler, schema: SchemaObject, path: string): JsonValue[] | null {
  if (schema.items === undefined || Array.isArray(schema.items)) return null;
  const flat = compiler.flatten(schema.items as Schema, path);
  if (flat === false) return [];
  const listed = listedValues(flat) ?? (flat.type === "boolean" && flat.nullable !== true ? [true, false] : null);
  if (listed === null || listed.length > 1000) return null;
  const values = distinctJson(listed.filter((value) => conforms(compiler, value, flat, path)));
  return values.length <= MAX_DISTINCT ? values : null;
}

function remaining(comma: Expression, tail: Expression, count: number, min: number, max: number | null): Expression {
  const least = Math.max(0, min - count);
  const most = max === null ? null : Math.max(0, max - count);
  return repeat(isNever(tail) ? never : sequence(comma, tail), least, most);
}

/** Items beyond the prefix are generated only when the schema gives them a schema or their number is required. */
function itemSchemas(schema: SchemaObject, min: number): { prefix: Schema[]; rest: Schema } {
  const older = Array.isArray(schema.items);
  const prefix = (older ? schema.items : (schema.prefixItems ?? [])) as JsonValue[] as Schema[];
  const declared = (older ? schema.additionalItems : schema.items) as Schema | undefined;
  return { prefix, rest: declared ?? (prefix.length === 0 || min > prefix.length) };
}
