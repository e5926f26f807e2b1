// Values that violate one keyword, as alternatives. Values are not generated if their violation would need too large an
// automaton.

import { GrammarError } from "../../grammar-error.ts";
import type { SchemaDocument } from "../document.ts";
import { isObject, type JsonValue, type Schema, type SchemaObject } from "../keywords.ts";
import { formatBounds } from "../numbers/integers.ts";
import { isKnownFormat, surelyNot } from "../strings/formats.ts";
import { ALL_TYPES, anything, type Conjunction, type TypeName } from "./conjunction.ts";
import { bounds } from "./demands.ts";

interface Alternatives {
  readonly document: SchemaDocument;
  of(schema: Schema, path: string): readonly Conjunction[];
  rejected(schema: Schema, path: string): readonly Conjunction[];
  opposite(schema: Schema): Schema;
  narrow(keywords: string, path: string): void;
  product(a: readonly Conjunction[], b: readonly Conjunction[], path: string): readonly Conjunction[];
}

/** null if values that violate this keyword cannot be generated. */
export function negatedKeyword(
  cases: Alternatives,
  schema: SchemaObject,
  keywords: SchemaObject,
  keyword: string,
  path: string,
): readonly Conjunction[] | null {
  const value = keywords[keyword]!;
  const count = value as number;
  const where = `${path}/${keyword}`;
  switch (keyword) {
    case "type":
      return otherTypes(keywords);
    case "const":
      return except([value]);
    case "enum":
      if ((value as JsonValue[]).some(isNested)) cases.narrow('not" around "enum', path);
      return except(value as JsonValue[]);
    case "$ref":
      return cases.rejected(cases.document.resolve(schema, keyword, path), where);
    case "allOf":
      return (value as Schema[]).flatMap((part) => whereExpressible(() => cases.rejected(part, where)));
    case "anyOf":
      return noneOf(cases, value as Schema[], where);
    case "oneOf":
      return [...noneOf(cases, value as Schema[], where), ...twoOf(cases, value as Schema[], where)];
    case "not":
      return cases.of(value as Schema, where);
    case "if": {
      const then = cases.product(
        cases.of(value as Schema, where),
        cases.rejected((keywords.then ?? true) as Schema, where),
        where,
      );
      const otherwise = cases.rejected((keywords.else ?? true) as Schema, where);
      return [...then, ...cases.product(cases.rejected(value as Schema, where), otherwise, where)];
    }
    case "then":
    case "else":
    case "nullable":
    case "minContains":
    case "maxContains":
      return [];
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return outside(keywords, keyword);
    case "minLength":
      return count === 0 ? [] : [of("string", { maxLength: count - 1 })];
    case "maxLength":
      return [of("string", { minLength: count + 1 })];
    case "pattern":
      return [of("string", { notPatterns: [value as string] })];
    case "minItems":
      return count === 0 ? [] : [of("array", { maxItems: count - 1 })];
    case "maxItems":
      return [of("array", { minItems: count + 1 })];
    case "minProperties":
      return count === 0 ? [] : [of("object", { maxProperties: count - 1 })];
    case "maxProperties":
      return [of("object", { minProperties: count + 1 })];
    case "contains":
      return otherCounts(cases, value as Schema, keywords);
    case "items":
      if (!Array.isArray(value) && keywords.prefixItems === undefined) {
        return [of("array", { contains: [{ schema: cases.opposite(value as Schema), min: 1, max: null }] })];
      }
      return Array.isArray(value) ? wrongPosition(cases, value as Schema[]) : null;
    case "prefixItems":
      return wrongPosition(cases, value as Schema[]);
    case "required":
      return (value as string[]).map((name) => of("object", { layers: [only(name, false)] }));
    case "properties":
      return Object.entries(value as { [name: string]: Schema }).map(([name, by]) =>
        of("object", { required: [name], layers: [only(name, cases.opposite(by))] }),
      );
    case "patternProperties":
      return Object.entries(value as { [pattern: string]: Schema }).map(([pattern, by]) =>
        of("object", { some: [{ names: { pattern }, schema: cases.opposite(by) }] }),
      );
    case "additionalProperties":
      return [of("object", { some: [{ names: undeclared(keywords), schema: cases.opposite(value as Schema) }] })];
    case "propertyNames":
      return [of("object", { some: [{ names: cases.opposite(value as Schema), schema: true }] })];
    case "multipleOf":
      return [of("number", { notDivisors: [count] })];
    case "format":
      cases.narrow('not" around "format', path);
      return wrongFormat(value as string);
    case "dependentRequired":
    case "dependentSchemas":
    case "dependencies":
      return Object.entries(value as { [name: string]: JsonValue }).flatMap(([name, demanded]) => {
        const then = isObject(demanded) || typeof demanded === "boolean" ? demanded : { required: demanded };
        return cases.product([of("object", { required: [name] })], cases.rejected(then, where), where);
      });
    default:
      return null;
  }
}

/** One way to violate a conjunction is enough, so parts without one are skipped. */
function whereExpressible(find: () => readonly Conjunction[]): readonly Conjunction[] {
  try {
    return find();
  } catch (error) {
    if (error instanceof GrammarError) return [];
    throw error;
  }
}

function of(type: TypeName, demands: Partial<Conjunction>): Conjunction {
  return { ...anything, types: [type], ...demands };
}

function only(name: string, schema: Schema): Conjunction["layers"][number] {
  return { properties: { [name]: schema }, patterns: [], additional: null };
}

/** Names that additionalProperties applies to. */
function undeclared({ properties, patternProperties }: SchemaObject): Schema {
  const names = Object.keys((properties ?? {}) as SchemaObject);
  const patterns = Object.keys((patternProperties ?? {}) as SchemaObject).map((pattern) => ({ pattern }));
  return { allOf: [...(names.length > 0 ? [{ enum: names }] : []), ...patterns].map((each) => ({ not: each })) };
}

/** Strings that no reader takes for the format; null if there is no simple way to be sure. */
function wrongFormat(format: string): readonly Conjunction[] | null {
  const pattern = surelyNot(format);
  if (pattern !== null) return [of("string", { patterns: [pattern] })];
  return isKnownFormat(format) || formatBounds(format).some(Number.isFinite) ? null : [];
}

function isNested(value: JsonValue): boolean {
  return typeof value === "object" && value !== null;
}

function otherTypes(keywords: SchemaObject): readonly Conjunction[] {
  const names = [keywords.type!].flat() as string[];
  if (keywords.nullable === true) names.push("null");
  const types = ALL_TYPES.filter((type) => !names.includes(type) && !(type === "number" && names.includes("integer")));
  const fractions = names.includes("integer") && !names.includes("number") ? [of("number", { notDivisors: [1] })] : [];
  return types.length === 0 ? fractions : [{ ...anything, types }, ...fractions];
}

/** Values unlike all of these. Objects and arrays differ from all of them in the same way: in size, or in one place. */
function except(values: readonly JsonValue[]): Conjunction[] {
  const arrays = values.filter((value) => Array.isArray(value));
  const objects = values.filter((value) => isObject(value));
  const types = ALL_TYPES.filter(
    (type) => !(type === "array" && arrays.length > 0) && !(type === "object" && objects.length > 0),
  );
  const others: Conjunction = {
    ...anything,
    types: types.length === ALL_TYPES.length ? null : types,
    excluded: values.filter((value) => !isNested(value)),
  };
  return [
    others,
    ...(arrays.length > 0 ? otherArrays(arrays) : []),
    ...(objects.length > 0 ? otherObjects(objects) : []),
  ];
}

/** Places in which a value may differ from the listed ones. */
const MAX_WAYS = 20;

function otherObjects(values: readonly { [name: string]: JsonValue }[]): Conjunction[] {
  const sizes = values.map((value) => Object.keys(value).length);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const shared = Object.keys(values[0]!).filter((name) => values.every((value) => Object.hasOwn(value, name)));
  const fewer = least === 0 ? [] : [of("object", { maxProperties: least - 1 })];
  const without = shared.slice(0, MAX_WAYS).map((name) => of("object", { layers: [only(name, false)] }));
  // A property is enough to differ from those without it, and its value to differ from the others.
  const different = [...new Set(values.flatMap((value) => Object.keys(value)))].slice(0, MAX_WAYS).map((name) => {
    const known = values.flatMap((value) => (Object.hasOwn(value, name) ? [value[name]!] : []));
    return of("object", { required: [name], layers: [only(name, { not: { enum: known } })] });
  });
  return [...different, ...without, ...fewer, of("object", { minProperties: most + 1 })];
}

function otherArrays(values: readonly JsonValue[][]): Conjunction[] {
  const lengths = values.map((value) => value.length);
  const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
  const shorter = least === 0 ? [] : [of("array", { maxItems: least - 1 })];
  const different = Array.from({ length: Math.min(most, MAX_WAYS) }, (_, index) => {
    const wrong: Schema = { not: { enum: values.flatMap((value) => (index < value.length ? [value[index]!] : [])) } };
    const prefix = [...Array.from({ length: index }, () => true), wrong];
    return of("array", { tuples: [{ prefix, rest: null }], minItems: index + 1 });
  });
  return [...different, ...shorter, of("array", { minItems: most + 1 })];
}

function outside(keywords: SchemaObject, keyword: string): readonly Conjunction[] {
  const [low, high] = bounds({ [keyword]: keywords[keyword]! });
  // Draft 4's booleans are negated together with the bound they modify.
  if (typeof keywords[keyword] === "boolean") return [];
  const [sharpLow, sharpHigh] = bounds(keywords);
  if (low) {
    return [of("number", { high: { value: low.value, exclusive: !(low.exclusive || sharp(sharpLow, low.value)) } })];
  }
  return [
    of("number", { low: { value: high!.value, exclusive: !(high!.exclusive || sharp(sharpHigh, high!.value)) } }),
  ];
}

function sharp(bound: { value: number; exclusive: boolean } | null, value: number): boolean {
  return bound !== null && bound.value === value && bound.exclusive;
}

/** Arrays with too few or too many items that satisfy the schema. */
function otherCounts(cases: Alternatives, schema: Schema, keywords: SchemaObject): readonly Conjunction[] {
  const { minContains = 1, maxContains = null } = keywords as { minContains?: number; maxContains?: number };
  const counted = (min: number, max: number | null): Conjunction => of("array", { contains: [{ schema, min, max }] });
  const none = of("array", { tuples: [{ prefix: [], rest: cases.opposite(schema) }] });
  const fewer = minContains === 0 ? [] : [minContains === 1 ? none : counted(0, minContains - 1)];
  return [...fewer, ...(maxContains === null ? [] : [counted(maxContains + 1, null)])];
}

function noneOf(cases: Alternatives, branches: readonly Schema[], path: string): readonly Conjunction[] {
  return branches.reduce<readonly Conjunction[]>(
    (left, branch) => cases.product(left, cases.rejected(branch, path), path),
    [anything],
  );
}

function twoOf(cases: Alternatives, branches: readonly Schema[], path: string): readonly Conjunction[] {
  return branches.flatMap((one, index) =>
    branches.slice(index + 1).flatMap((other) => cases.product(cases.of(one, path), cases.of(other, path), path)),
  );
}

/** Some position of a tuple holds a forbidden value. */
function wrongPosition(cases: Alternatives, prefix: readonly Schema[]): readonly Conjunction[] {
  return prefix.map((schema, index) => {
    const wrong = [...prefix.slice(0, index).map((): Schema => true), cases.opposite(schema)];
    return of("array", { tuples: [{ prefix: wrong, rest: null }], minItems: index + 1 });
  });
}
