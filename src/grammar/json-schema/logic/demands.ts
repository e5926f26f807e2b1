// Turns the plain keywords of one schema into a conjunction. cases.ts handles the keywords that combine schemas.

import { isObject, type JsonValue, type Schema, type SchemaObject } from "../keywords.ts";
import { isKnownFormat } from "../strings/formats.ts";
import { ALL_TYPES, anything, type Bound, type Conjunction, type TypeName, tighter } from "./conjunction.ts";

const SPOKEN: Record<string, TypeName> = {
  additionalItems: "array",
  additionalProperties: "object",
  contains: "array",
  dependencies: "object",
  dependentRequired: "object",
  dependentSchemas: "object",
  exclusiveMaximum: "number",
  exclusiveMinimum: "number",
  items: "array",
  maxItems: "array",
  maxLength: "string",
  maxProperties: "object",
  maximum: "number",
  minItems: "array",
  minLength: "string",
  minProperties: "object",
  minimum: "number",
  multipleOf: "number",
  pattern: "string",
  patternProperties: "object",
  prefixItems: "array",
  properties: "object",
  propertyNames: "object",
  required: "object",
  uniqueItems: "array",
};

export function ownDemands(keywords: SchemaObject): Conjunction {
  const spoken = Object.entries(keywords).flatMap(([keyword, value]) =>
    isVacuous(value) ? [] : (SPOKEN[keyword] ?? []),
  );
  // Other formats are annotations and say nothing about the type.
  if (keywords.format !== undefined && isKnownFormat(keywords.format as string)) spoken.push("string");
  const { types, integer } = declaredTypes(keywords);
  const [low, high] = bounds(keywords);
  return {
    ...anything,
    types,
    spoken: [...new Set(spoken)],
    listed: listedValues(keywords),
    integer,
    low,
    high,
    divisors: keywords.multipleOf === undefined ? [] : [keywords.multipleOf as number],
    patterns: keywords.pattern === undefined ? [] : [keywords.pattern as string],
    formats: keywords.format === undefined ? [] : [keywords.format as string],
    minLength: (keywords.minLength ?? 0) as number,
    maxLength: (keywords.maxLength ?? null) as number | null,
    ...arrayDemands(keywords),
    ...objectDemands(keywords),
  };
}

/** Such a value of a keyword allows everything, so it does not show which type is meant. */
function isVacuous(value: JsonValue): boolean {
  return value === true || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

function declaredTypes(keywords: SchemaObject): { types: readonly TypeName[] | null; integer: boolean } {
  if (keywords.type === undefined) return { types: null, integer: false };
  const names = [keywords.type].flat() as string[];
  if (keywords.nullable === true) names.push("null");
  const integer = names.includes("integer") && !names.includes("number");
  return {
    types: ALL_TYPES.filter((type) => names.includes(type) || (type === "number" && names.includes("integer"))),
    integer,
  };
}

export function listedValues(keywords: SchemaObject): readonly JsonValue[] | null {
  if (keywords.const !== undefined) return [keywords.const];
  return keywords.enum === undefined ? null : (keywords.enum as JsonValue[]);
}

/** In draft 4 the exclusive keywords are booleans that make the other bounds exclusive. */
export function bounds(keywords: SchemaObject): [low: Bound | null, high: Bound | null] {
  const side = (inclusive: string, sharp: string, direction: 1 | -1): Bound | null => {
    const given = keywords[inclusive] as number | undefined;
    const exclusive = keywords[sharp] as number | boolean | undefined;
    const own = given === undefined ? null : { value: given, exclusive: exclusive === true };
    return typeof exclusive === "number" ? tighter(own, { value: exclusive, exclusive: true }, direction) : own;
  };
  return [side("minimum", "exclusiveMinimum", 1), side("maximum", "exclusiveMaximum", -1)];
}

function arrayDemands(keywords: SchemaObject): Partial<Conjunction> {
  const older = Array.isArray(keywords.items);
  const prefix = (older ? keywords.items : (keywords.prefixItems ?? [])) as Schema[];
  const rest = ((older ? keywords.additionalItems : keywords.items) ?? null) as Schema | null;
  const min = (keywords.minContains ?? 1) as number;
  const max = (keywords.maxContains ?? null) as number | null;
  return {
    tuples: prefix.length === 0 && rest === null ? [] : [{ prefix, rest }],
    contains: keywords.contains === undefined ? [] : [{ schema: keywords.contains as Schema, min, max }],
    unique: keywords.uniqueItems === true,
    minItems: (keywords.minItems ?? 0) as number,
    maxItems: (keywords.maxItems ?? null) as number | null,
  };
}

function objectDemands(keywords: SchemaObject): Partial<Conjunction> {
  const { properties, patternProperties, additionalProperties } = keywords;
  const layer = {
    properties: (isObject(properties) ? properties : {}) as { [name: string]: Schema },
    patterns: Object.entries((patternProperties ?? {}) as { [pattern: string]: Schema }),
    additional: (additionalProperties ?? null) as Schema | null,
  };
  const mentioned = properties !== undefined || patternProperties !== undefined || additionalProperties !== undefined;
  return {
    layers: mentioned ? [layer] : [],
    names: keywords.propertyNames === undefined ? [] : [keywords.propertyNames as Schema],
    required: (keywords.required ?? []) as string[],
    minProperties: (keywords.minProperties ?? 0) as number,
    maxProperties: (keywords.maxProperties ?? null) as number | null,
  };
}
