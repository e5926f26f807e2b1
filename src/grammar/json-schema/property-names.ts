// Which names the properties of an object may have, and what a name demands of its value: propertyNames and patternProperties.

import { complementDfa, intersectDfas, otherThan } from "../char-dfa.ts";
import type { CharDfa } from "../expression.ts";
import { type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import { both, typeList } from "./merge.ts";
import type { SchemaCompiler } from "./schema-compiler.ts";
import { stringDfa } from "./strings.ts";

/** Names fall into as many classes as patterns can meet in. */
const MAX_PATTERNS = 6;

/** What `propertyNames` demands of every name, flat; null = nothing. */
export function nameSchema(compiler: SchemaCompiler, schema: SchemaObject, path: string): SchemaObject | null {
  if (schema.propertyNames === undefined) return null;
  const flat = compiler.flatten(schema.propertyNames as Schema, `${path}/propertyNames`);
  if (flat === false || (flat.type !== undefined && !typeList(flat.type).includes("string"))) return { enum: [] };
  for (const keyword of ["anyOf", "oneOf"]) {
    if (flat[keyword] !== undefined) {
      throw schemaError(`the schema keyword "${keyword}" is not supported for names`, `${path}/propertyNames`);
    }
  }
  const narrowing = ["const", "enum", "pattern", "format", "minLength", "maxLength"];
  return narrowing.some((keyword) => flat[keyword] !== undefined) ? flat : null;
}

/** The patterns of patternProperties with what each demands. */
export function namePatterns(schema: SchemaObject, path: string): [string, Schema][] {
  const patterns = Object.entries((schema.patternProperties ?? {}) as Record<string, Schema>);
  if (patterns.length > MAX_PATTERNS)
    throw schemaError(`the schema keyword "patternProperties" is supported for up to ${MAX_PATTERNS} patterns`, path);
  return patterns;
}

/** What the patterns of a name demand together, or what holds for names without one. */
export function unlessNone(byPattern: readonly Schema[], additional: Schema): Schema {
  return byPattern.length === 0 ? additional : byPattern.reduce(both);
}

/** Undeclared names that `names` allows. */
export function otherNames(declared: readonly [string, Schema][], names: SchemaObject | null, path: string): CharDfa {
  const others = otherThan(declared.map(([name]) => name));
  return names === null ? others : stringDfa(names, others, `${path}/propertyNames`);
}

/** `names` cut along the patterns of patternProperties: the names that match exactly the same ones. */
export function nameClasses(
  names: CharDfa,
  patterns: readonly [string, Schema][],
  path: string,
): { keys: CharDfa; by: Schema[] }[] {
  let classes: { keys: CharDfa; by: Schema[] }[] = [{ keys: names, by: [] }];
  const subject = `the combination of patterns at ${path}/patternProperties`;
  for (const [pattern, schema] of patterns) {
    const matching = stringDfa({ pattern }, null, `${path}/patternProperties`);
    const others = complementDfa(matching);
    classes = classes
      .flatMap(({ keys, by }) => [
        { keys: intersectDfas(keys, matching, subject), by: [...by, schema] },
        { keys: intersectDfas(keys, others, subject), by },
      ])
      .filter(({ keys }) => keys.states.some((state) => state.final));
  }
  return classes;
}
