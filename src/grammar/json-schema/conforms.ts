// Does a listed value (enum, const) satisfy the keywords beside it? A small validator for exactly the enforced keywords;
// patterns run on the grammar's own automaton, which cannot be made slow by its input.

import { compileExpressions } from "../automaton/expression-compiler.ts";
import { linkProgram } from "../automaton/link.ts";
import { Matcher } from "../match/matcher.ts";
import { isObject, type JsonValue, type Schema, type SchemaObject } from "./keywords.ts";
import { distinctJson, sameJson, typeList } from "./merge.ts";
import { formatBounds } from "./numeric-schema.ts";
import type { SchemaCompiler } from "./schema-compiler.ts";
import { stringPatterns } from "./strings.ts";

export function conforms(compiler: SchemaCompiler, value: JsonValue, schema: Schema, path: string): boolean {
  const flat = compiler.flatten(schema, path);
  if (flat === false) return false;
  const valid = (inner: JsonValue, by: JsonValue | undefined): boolean =>
    conforms(compiler, inner, (by ?? true) as Schema, path);
  if (flat.type !== undefined && !hasType(value, flat)) return false;
  if (flat.const !== undefined && !sameJson(flat.const, value)) return false;
  if (flat.enum !== undefined && !(flat.enum as JsonValue[]).some((listed) => sameJson(listed, value))) return false;
  if (flat.anyOf !== undefined && !(flat.anyOf as JsonValue[]).some((branch) => valid(value, branch))) return false;
  if (flat.oneOf !== undefined && (flat.oneOf as JsonValue[]).filter((branch) => valid(value, branch)).length !== 1)
    return false;
  if (typeof value === "number") return numberConforms(value, flat);
  if (typeof value === "string") return stringConforms(value, flat, path);
  if (Array.isArray(value)) return arrayConforms(value, flat, valid);
  return isObject(value) ? objectConforms(value, flat, valid) : true;
}

function hasType(value: JsonValue, schema: SchemaObject): boolean {
  const types = typeList(schema.type!);
  if (value === null) return types.includes("null") || schema.nullable === true;
  if (Array.isArray(value)) return types.includes("array");
  if (typeof value === "number")
    return types.includes("number") || (types.includes("integer") && Number.isInteger(value));
  return types.includes(typeof value);
}

function numberConforms(value: number, schema: SchemaObject): boolean {
  const within = (keyword: string, test: (bound: number) => boolean): boolean =>
    schema[keyword] === undefined || test(schema[keyword] as number);
  const [least, greatest] = formatBounds(schema.format);
  return (
    value >= least &&
    value <= greatest &&
    within("minimum", (bound) => value >= bound) &&
    within("maximum", (bound) => value <= bound) &&
    within("exclusiveMinimum", (bound) => value > bound) &&
    within("exclusiveMaximum", (bound) => value < bound) &&
    within("multipleOf", (divisor) => Number.isInteger(value / divisor))
  );
}

function stringConforms(value: string, schema: SchemaObject, path: string): boolean {
  const length = Array.from(value).length;
  if (length < ((schema.minLength ?? 0) as number) || length > ((schema.maxLength ?? length) as number)) return false;
  return stringPatterns(schema, path).every((root) => {
    const matcher = new Matcher(linkProgram(compileExpressions({ rules: [], root })));
    return matcher.advanceBytes(matcher.start(), new TextEncoder().encode(value))?.accepting ?? false;
  });
}

type Valid = (value: JsonValue, schema: JsonValue | undefined) => boolean;

function arrayConforms(value: readonly JsonValue[], schema: SchemaObject, valid: Valid): boolean {
  const older = Array.isArray(schema.items);
  const prefix = (older ? schema.items : (schema.prefixItems ?? [])) as JsonValue[];
  const rest = older ? schema.additionalItems : schema.items;
  if (value.length < ((schema.minItems ?? 0) as number)) return false;
  if (value.length > ((schema.maxItems ?? value.length) as number)) return false;
  if (schema.uniqueItems === true && distinctJson(value).length < value.length) return false;
  return value.every((item, index) => valid(item, index < prefix.length ? prefix[index] : rest));
}

function objectConforms(value: { [key: string]: JsonValue }, schema: SchemaObject, valid: Valid): boolean {
  const properties = (schema.properties ?? {}) as Record<string, JsonValue>;
  const names = Object.keys(value);
  if (((schema.required ?? []) as string[]).some((name) => !Object.hasOwn(value, name))) return false;
  if (names.length < ((schema.minProperties ?? 0) as number)) return false;
  if (names.length > ((schema.maxProperties ?? names.length) as number)) return false;
  const patterns = Object.entries((schema.patternProperties ?? {}) as Record<string, JsonValue>);
  return names.every((name) => {
    const by = patterns.filter(([pattern]) => valid(name, { pattern })).map(([, demanded]) => demanded);
    if (Object.hasOwn(properties, name)) by.push(properties[name]!);
    return (
      valid(name, schema.propertyNames) &&
      (by.length > 0 ? by : [schema.additionalProperties]).every((demanded) => valid(value[name]!, demanded))
    );
  });
}
