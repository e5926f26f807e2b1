// Can it be shown that nothing generated for one alternative of oneOf is valid for another? Only then is choosing between
// them the same as "exactly one".

import { conforms } from "./conforms.ts";
import type { JsonValue, SchemaObject } from "./keywords.ts";
import { sameJson } from "./merge.ts";
import { type SchemaCompiler, typesOf } from "./schema-compiler.ts";

/** No output generated for `a` is valid under `b`. Both are flat (see SchemaCompiler.flatten). False when not obvious. */
export function exclusive(compiler: SchemaCompiler, a: SchemaObject, b: SchemaObject, path: string): boolean {
  const listed = listedValues(a);
  if (listed) return listed.every((value) => !conforms(compiler, value, b, path));
  const allowed = listedValues(b);
  if (allowed) return allowed.every((value) => !conforms(compiler, value, a, path));
  if (b.type !== undefined && !typesOf(a).some((type) => typesOf(b).some((other) => overlaps(type, other))))
    return true;
  if (typesOf(a).join() !== "object" || typesOf(b).join() !== "object") return false;
  return objectsExclude(compiler, a, b, path);
}

function objectsExclude(compiler: SchemaCompiler, a: SchemaObject, b: SchemaObject, path: string): boolean {
  const left = (a.properties ?? {}) as Record<string, JsonValue>;
  const right = (b.properties ?? {}) as Record<string, JsonValue>;
  const names = (schema: SchemaObject): string[] => (schema.required ?? []) as string[];
  const always = names(a).some((name) => {
    if (!Object.hasOwn(right, name)) return b.additionalProperties === false && b.patternProperties === undefined;
    const values = Object.hasOwn(left, name) ? flatValues(compiler, left[name]!, path) : null;
    const others = flatValues(compiler, right[name]!, path);
    return (
      values !== null && others !== null && !values.some((value) => others.some((other) => sameJson(value, other)))
    );
  });
  if (always) return true;
  // Properties that alternatives inside `a` declare are generated too, and not among those of `a` itself.
  const alternatives = a.anyOf !== undefined || a.oneOf !== undefined;
  const closed =
    a.patternProperties === undefined &&
    (a.additionalProperties === false ||
      (a.additionalProperties === undefined && Object.keys(left).length > 0 && !alternatives));
  return closed && names(b).some((name) => !Object.hasOwn(left, name) && !names(a).includes(name));
}

function flatValues(compiler: SchemaCompiler, schema: JsonValue, path: string): JsonValue[] | null {
  const flat = compiler.flatten(schema as boolean | SchemaObject, path);
  return flat === false ? [] : listedValues(flat);
}

export function listedValues(schema: SchemaObject): JsonValue[] | null {
  if (schema.const !== undefined) return [schema.const];
  return schema.enum === undefined ? null : (schema.enum as JsonValue[]);
}

function overlaps(a: string, b: string): boolean {
  const numeric = ["integer", "number"];
  return a === b || (numeric.includes(a) && numeric.includes(b));
}
