// How each JSON Schema keyword is treated: enforced, ignored as an annotation, or refused because only an old draft
// asserts it. A keyword that no draft defines is an annotation, as the standard requires.
import { GrammarError } from "../grammar-error.ts";

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type SchemaObject = { readonly [key: string]: JsonValue };
export type Schema = boolean | SchemaObject;

const ENFORCED = new Set([
  "$dynamicRef",
  "$recursiveRef",
  "$ref",
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "const",
  "contains",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "else",
  "enum",
  "exclusiveMaximum",
  "exclusiveMinimum",
  "format",
  "if",
  "items",
  "maxContains",
  "maxItems",
  "maxLength",
  "maxProperties",
  "maximum",
  "minContains",
  "minItems",
  "minLength",
  "minProperties",
  "minimum",
  "multipleOf",
  "not",
  "nullable",
  "oneOf",
  "pattern",
  "patternProperties",
  "prefixItems",
  "properties",
  "propertyNames",
  "required",
  "then",
  "type",
  "unevaluatedItems",
  "unevaluatedProperties",
  "uniqueItems",
]);

/** Annotations that some draft or OpenAPI defines. They have no effect and need no log line. */
const ANNOTATIONS = new Set([
  "$anchor",
  "$comment",
  "$defs",
  "$dynamicAnchor",
  "$id",
  "$recursiveAnchor",
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

export function isEnforced(keyword: string): boolean {
  return ENFORCED.has(keyword);
}

/** Whether no draft defines the keyword. It then says nothing about the value. */
export function isUnknown(keyword: string): boolean {
  return !ENFORCED.has(keyword) && !ANNOTATIONS.has(keyword) && !keyword.startsWith("x-");
}

/** Assertions that only draft 3 defines. They count in a schema that declares this draft. */
export const DRAFT_3_ASSERTIONS: readonly string[] = ["disallow", "divisibleBy", "extends"];

export function schemaError(message: string, path: string): GrammarError {
  return new GrammarError(`${message}, at ${path}`);
}

/** What the keyword's value must be, if it has the wrong type; null if the type is right. */
export function wrongType(keyword: string, value: JsonValue): string | null {
  switch (keyword) {
    case "$dynamicRef":
    case "$recursiveRef":
    case "$ref":
    case "format":
    case "pattern":
      return typeof value === "string" ? null : "a string";
    case "nullable":
    case "uniqueItems":
      return typeof value === "boolean" ? null : "a boolean";
    case "maxContains":
    case "maxItems":
    case "maxLength":
    case "maxProperties":
    case "minContains":
    case "minItems":
    case "minLength":
    case "minProperties":
      return Number.isInteger(value) && (value as number) >= 0 ? null : "a non-negative integer";
    case "maximum":
    case "minimum":
      return Number.isFinite(value) ? null : "a number";
    case "exclusiveMaximum":
    case "exclusiveMinimum":
      return Number.isFinite(value) || typeof value === "boolean" ? null : "a number";
    case "multipleOf":
      return Number.isFinite(value) && (value as number) > 0 ? null : "a number above 0";
    case "enum":
      return Array.isArray(value) && value.length > 0 ? null : "a non-empty array";
    case "required":
      return isStringList(value) ? null : "an array of strings";
    case "allOf":
      // Drafts forbid an empty list. It occurs nevertheless, and can only mean one thing.
      return Array.isArray(value) && value.every(isSchema) ? null : "an array of schemas";
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
    case "contains":
    case "else":
    case "if":
    case "not":
    case "propertyNames":
    case "then":
    case "unevaluatedItems":
    case "unevaluatedProperties":
      return isSchema(value) ? null : "a schema";
    case "dependentSchemas":
    case "patternProperties":
    case "properties":
      return isObject(value) && Object.values(value).every(isSchema) ? null : "an object of schemas";
    case "dependentRequired":
      return isObject(value) && Object.values(value).every(isStringList) ? null : "an object of arrays of strings";
    case "dependencies":
      return isObject(value) && Object.values(value).every((each) => isSchema(each) || isStringList(each))
        ? null
        : "an object of schemas and arrays of strings";
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

function isStringList(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

export function isSchema(value: JsonValue | undefined): value is Schema {
  return typeof value === "boolean" || isObject(value);
}

export function isObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Equality of JSON values as defined for enum, const and uniqueItems.

/** Deep equality. The order of object keys does not matter. */
export function sameJson(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]!));
  }
  if (isObject(a)) {
    if (!isObject(b)) return false;
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key]!, b[key]!))
    );
  }
  return a === b;
}

/** Equal values, and only those, give the same text. */
export function canonicalText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key]!)}`).join(",")}}`;
}

export function distinctJson(values: readonly JsonValue[]): JsonValue[] {
  return [...new Map(values.map((value) => [canonicalText(value), value])).values()];
}
