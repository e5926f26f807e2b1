// Array schemas: prefixItems, items, minItems, maxItems (and the older form, an array of schemas under items).

import { choice, type Expression, empty, isNever, never, optional, repeat, sequence, text } from "../expression.ts";
import { type JsonValue, type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import type { SchemaCompiler } from "./schema-compiler.ts";

/** Longer arrays are never generated where a maximum is given; a minimum beyond it is refused. */
const maxCounted = 20_000;

export function compileArray(compiler: SchemaCompiler, schema: SchemaObject, path: string): Expression {
  const json = compiler.text;
  const min = (schema.minItems ?? 0) as number;
  const declaredMax = (schema.maxItems ?? null) as number | null;
  if (min > maxCounted) throw schemaError(`the schema keyword "minItems" is supported up to ${maxCounted}`, path);
  if (declaredMax !== null && declaredMax < min) throw schemaError('"maxItems" is less than "minItems"', path);
  const max = declaredMax === null ? null : Math.min(declaredMax, maxCounted);
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
