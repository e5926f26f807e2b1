// The types of JSON that a schema of an argument allows. A text without quotes is read by them: "10115" is a number or a text.

import { isJsonObject } from "../../json/json.ts";

export type JsonType = "string" | "number" | "boolean" | "object" | "array" | "null";

/** null: the schema does not say, or says it elsewhere. */
export function schemaTypes(schema: unknown): ReadonlySet<JsonType> | null {
  if (!isJsonObject(schema)) return null;
  if (schema.type !== undefined) return new Set([schema.type].flat().map(typeNamed));
  if (Array.isArray(schema.enum)) return new Set(schema.enum.map(jsonType));
  const choices = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(choices)) return null;
  const types = new Set<JsonType>();
  for (const choice of choices) {
    const found = schemaTypes(choice);
    if (found === null) return null;
    for (const type of found) types.add(type);
  }
  return types;
}

export function jsonType(value: unknown): JsonType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Exclude<JsonType, "null" | "array">);
}

function typeNamed(name: unknown): JsonType {
  return name === "integer" ? "number" : (name as JsonType);
}
