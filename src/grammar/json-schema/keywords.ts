// What each JSON-Schema keyword is to us: enforced, an annotation without effect, or refused by name. A keyword in none
// of the lists is refused too: nothing a schema says is dropped silently.

import { GrammarError } from "../grammar-error.ts";

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type SchemaObject = { readonly [key: string]: JsonValue };
export type Schema = boolean | SchemaObject;

const ENFORCED = new Set([
  "$ref",
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "const",
  "enum",
  "exclusiveMaximum",
  "exclusiveMinimum",
  "format",
  "items",
  "maxItems",
  "maxLength",
  "maxProperties",
  "maximum",
  "minItems",
  "minLength",
  "minProperties",
  "minimum",
  "multipleOf",
  "nullable",
  "oneOf",
  "pattern",
  "patternProperties",
  "prefixItems",
  "properties",
  "propertyNames",
  "required",
  "type",
  "uniqueItems",
]);

const ANNOTATIONS = new Set([
  "$anchor",
  "$comment",
  "$defs",
  "$id",
  "$schema",
  "$vocabulary",
  "contentEncoding",
  "contentMediaType",
  "contentSchema",
  "default",
  "definitions",
  "deprecated",
  "description",
  "discriminator",
  "example",
  "examples",
  "externalDocs",
  "id",
  "readOnly",
  "title",
  "writeOnly",
  "xml",
]);

function isAnnotation(keyword: string): boolean {
  return ANNOTATIONS.has(keyword) || keyword.startsWith("x-");
}

export function schemaError(message: string, path: string): GrammarError {
  return new GrammarError(`${message}, at ${path}`);
}

/** The schema's enforced keywords only, with their JSON types checked. Throws for everything that cannot be enforced. */
export function checkedKeywords(schema: SchemaObject, path: string): SchemaObject {
  const kept: Record<string, JsonValue> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    // Below the root it would change what references mean.
    if (keyword === "$id" && path !== "#")
      throw schemaError('the schema keyword "$id" is only supported at the root', path);
    if (isAnnotation(keyword)) continue;
    if (!ENFORCED.has(keyword)) throw schemaError(`the schema keyword "${keyword}" is not supported`, path);
    const wanted = wrongType(keyword, value);
    if (wanted) throw schemaError(`the schema keyword "${keyword}" must be ${wanted}`, path);
    kept[keyword] = value;
  }
  if (kept.uniqueItems === false) delete kept.uniqueItems;
  return kept;
}

const patternLists = new WeakSet<object>();

/** Several patterns that all hold, as a value of `pattern`. A schema as it was sent cannot hold such a list. */
export function mergedPatterns(patterns: string[]): JsonValue {
  patternLists.add(patterns);
  return patterns;
}

function wrongType(keyword: string, value: JsonValue): string | null {
  switch (keyword) {
    case "pattern":
      return typeof value === "string" || patternLists.has(value as object) ? null : "a string";
    case "$ref":
    case "format":
      return typeof value === "string" ? null : "a string";
    case "nullable":
    case "uniqueItems":
      return typeof value === "boolean" ? null : "a boolean";
    case "maxItems":
    case "minItems":
    case "maxLength":
    case "minLength":
    case "maxProperties":
    case "minProperties":
      return Number.isInteger(value) && (value as number) >= 0 ? null : "a non-negative integer";
    case "maximum":
    case "minimum":
    case "exclusiveMaximum":
    case "exclusiveMinimum":
    case "multipleOf":
      return Number.isFinite(value) && (keyword !== "multipleOf" || (value as number) > 0)
        ? null
        : keyword === "multipleOf"
          ? "a number above 0"
          : "a number";
    case "enum":
      return Array.isArray(value) && value.length > 0 ? null : "a non-empty array";
    case "required":
      return Array.isArray(value) && value.every((name) => typeof name === "string") ? null : "an array of strings";
    case "allOf":
    case "anyOf":
    case "oneOf":
      return Array.isArray(value) && value.length > 0 && value.every(isSchema) ? null : "a non-empty array of schemas";
    case "prefixItems":
      return Array.isArray(value) && value.every(isSchema) ? null : "an array of schemas";
    case "items":
      return isSchema(value) || (Array.isArray(value) && value.every(isSchema))
        ? null
        : "a schema or an array of schemas";
    case "additionalItems":
    case "additionalProperties":
    case "propertyNames":
      return isSchema(value) ? null : "a schema";
    case "patternProperties":
    case "properties":
      return isObject(value) && Object.values(value).every(isSchema) ? null : "an object of schemas";
    case "type":
      return isTypeList(value) ? null : "a JSON type name or an array of them";
    default:
      return null;
  }
}

const TYPE_NAMES = new Set(["null", "boolean", "object", "array", "number", "integer", "string"]);

function isTypeList(value: JsonValue): boolean {
  const names = Array.isArray(value) ? value : [value];
  return names.length > 0 && names.every((name) => typeof name === "string" && TYPE_NAMES.has(name));
}

export function isSchema(value: JsonValue | undefined): value is Schema {
  return typeof value === "boolean" || isObject(value);
}

export function isObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
