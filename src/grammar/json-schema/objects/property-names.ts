// The names that an object's members may have, and what each name demands of its value: propertyNames, patternProperties
// and additionalProperties of all layers.

import { intersectDfas, otherThan } from "../../char-dfa.ts";
import { determinise } from "../../determinise.ts";
import { type CharDfa, choice } from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import { type Schema, schemaError } from "../keywords.ts";
import { type Conjunction, generatedTypes, type Layer } from "../logic/conjunction.ts";
import { stringDfa } from "../strings/strings.ts";

/** Limit for the classes of names. Each combination of overlapping patterns is one class. */
const MAX_CLASSES = 64;

/** Names that propertyNames allows: all (null), the listed ones, or those of an automaton. */
export type AllowedNames = { readonly listed: readonly string[] } | { readonly dfa: CharDfa } | null;

export function allowedNames(context: SchemaContext, schemas: readonly Schema[], path: string): AllowedNames {
  const where = `${path}/propertyNames`;
  const schema = schemas.reduce((a, b) => context.cases.both(a, b), true);
  const cases = context.cases.of(schema, where).filter((each) => mayBeString(each));
  if (cases.some((each) => isFree(each))) return null;
  if (cases.every((each) => each.listed !== null)) {
    const names = cases.flatMap((each) => each.listed!).filter((name) => typeof name === "string");
    return { listed: [...new Set(names)].filter((name) => context.conforms(name, schema, where)) };
  }
  const automata = cases.map((each): CharDfa => {
    if (each.listed === null) return stringDfa(each, null, where);
    const names = each.listed.filter((name) => typeof name === "string" && context.conforms(name, schema, where));
    return determinise({ kind: "texts", texts: names as string[] }, where);
  });
  if (automata.length === 1) return { dfa: automata[0]! };
  return { dfa: determinise(choice(...automata.map((dfa) => ({ kind: "dfa" as const, dfa, json: false }))), where) };
}

/** null = all names. */
export function namesDfa(names: AllowedNames, path: string): CharDfa | null {
  if (names === null) return null;
  return "dfa" in names ? names.dfa : determinise({ kind: "texts", texts: names.listed }, path);
}

function mayBeString(each: Conjunction): boolean {
  return each.types === null || each.types.includes("string");
}

function isFree(each: Conjunction): boolean {
  return (
    each.listed === null &&
    each.patterns.length + each.notPatterns.length + each.formats.length + each.excluded.length === 0 &&
    each.minLength === 0 &&
    each.maxLength === null &&
    generatedTypes(each).length > 0
  );
}

/** The schema that all layers together apply to a member with this name. */
export function memberSchema(context: SchemaContext, layers: readonly Layer[], name: string, path: string): Schema {
  const matches = (pattern: string): boolean => context.conforms(name, { pattern }, `${path}/patternProperties`);
  return valueSchema(context, layers, matches, name);
}

function valueSchema(
  context: SchemaContext,
  layers: readonly Layer[],
  matches: (pattern: string) => boolean,
  name: string | null,
): Schema {
  let all: Schema = true;
  for (const { properties, patterns, additional } of layers) {
    const own: Schema[] = name !== null && Object.hasOwn(properties, name) ? [properties[name]!] : [];
    for (const [pattern, schema] of patterns) if (matches(pattern)) own.push(schema);
    if (own.length === 0) own.push(additional ?? true);
    for (const schema of own) all = context.cases.both(all, schema);
  }
  return all;
}

export interface NameClass {
  readonly keys: CharDfa;
  readonly schema: Schema;
  /** Whether some pattern matches these names. */
  readonly matched: boolean;
}

/** Undeclared names, split by the patterns of all layers. Each class has one schema for its values. */
export function nameClasses(
  context: SchemaContext,
  declared: readonly string[],
  allowed: CharDfa | null,
  layers: readonly Layer[],
  path: string,
): NameClass[] {
  const where = `${path}/patternProperties`;
  const subject = `the combination of patterns at ${where}`;
  const others = otherThan(declared);
  let classes = [
    { keys: allowed === null ? others : intersectDfas(others, allowed, subject), matched: [] as string[] },
  ];
  for (const pattern of new Set(layers.flatMap((layer) => layer.patterns.map(([source]) => source)))) {
    const matching = stringDfa({ patterns: [pattern] }, null, where);
    const missing = stringDfa({ notPatterns: [pattern] }, null, where);
    classes = classes
      .flatMap(({ keys, matched }) => [
        { keys: intersectDfas(keys, matching, subject), matched: [...matched, pattern] },
        { keys: intersectDfas(keys, missing, subject), matched },
      ])
      .filter(({ keys }) => keys.states.some((state) => state.final));
    if (classes.length > MAX_CLASSES) {
      throw schemaError('the schema keyword "patternProperties" has too many overlapping patterns', path);
    }
  }
  return classes.map(({ keys, matched }) => ({
    keys,
    schema: valueSchema(context, layers, (pattern) => matched.includes(pattern), null),
    matched: matched.length > 0,
  }));
}
