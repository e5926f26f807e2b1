// What must hold for any schema: the same verdict every time, only valid outputs, and no schema called unsatisfiable for
// which a valid value is known.

import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { compileConstraint } from "../../src/grammar/compile.ts";
import { GrammarError } from "../../src/grammar/grammar-error.ts";
import { grammarKey } from "../../src/grammar/match/constraint-factory.ts";
import { type AnySchema, value } from "./random-schemas.ts";
import { repeatedNames } from "./repeated-names.ts";
import { byteVocabulary, clumpedVocabulary, plainJson, Walker } from "./walk.ts";

const OPTIONS = { strict: false, validateFormats: false, multipleOfPrecision: 9, logger: false } as const;
const VALUES: readonly unknown[] = fc.sample(value, { numRuns: 3000 });
const SETTINGS = [
  plainJson,
  { ...plainJson, freeOrder: true },
  { ...plainJson, openObjects: true },
  { ...plainJson, compact: true, closedObjects: true },
];
const WALKS = 3;
const used = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

/** "generated", or why there was nothing to generate. Throws when something is wrong. */
export function judgeRandom(schema: AnySchema, seed: number): string {
  const validate = validator(schema);
  if (validate === null) return "not for ajv";
  const json = SETTINGS[seed % SETTINGS.length]!;
  const verdict = compiled(schema, json);
  const again = compiled(schema, json);
  if (verdict.key !== again.key || verdict.refused !== again.refused) throw new Error("two verdicts");
  if (verdict.key === null) {
    if (!verdict.refused.includes("can never be satisfied")) return verdict.refused;
    const valid = VALUES.find((each) => holds(validate, each));
    if (valid !== undefined) throw new Error(`${verdict.refused}, but ${JSON.stringify(valid)} satisfies it`);
    return "never satisfied";
  }
  for (const walker of used) {
    const fresh = new Walker(walker.vocabulary);
    for (let walk = 0; walk < WALKS; walk++) {
      const { text, finished } = walker.walk(verdict.key, seed + walk, 30, 600);
      const same = fresh.walk(verdict.key, seed + walk, 30, 600).text;
      if (same !== text) throw new Error(`with cold caches it generates ${same}, with warm ones ${text}`);
      if (!finished) continue; // an output of any length is allowed
      const parsed: unknown = JSON.parse(text);
      if (!validate(parsed)) throw new Error(`generated ${text}: ${JSON.stringify(validate.errors)}`);
      if (repeatedNames(text).length > 0) throw new Error(`repeats a name in ${text}`);
    }
  }
  return "generated";
}

/** null when ajv does not take the schema, for example because it refers to itself in place. */
function validator(schema: AnySchema): ValidateFunction | null {
  const older = String(schema.$schema).includes("draft-07");
  try {
    const validate = older ? new Ajv(OPTIONS).compile(plainReferences(schema)) : new Ajv2020(OPTIONS).compile(schema);
    for (const each of VALUES.slice(0, 50)) validate(each);
    return validate;
  } catch {
    return null;
  }
}

/** Draft 7 ignores what stands beside a reference. ajv does not. */
function plainReferences<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(plainReferences) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([name]) => !Object.hasOwn(schema, "$ref") || ["$ref", "definitions", "$schema"].includes(name),
  );
  return Object.fromEntries(kept.map(([name, each]) => [name, plainReferences(each)])) as T;
}

function holds(validate: ValidateFunction, each: unknown): boolean {
  try {
    return validate(each);
  } catch {
    return false; // endless recursion
  }
}

function compiled(
  schema: AnySchema,
  json: typeof plainJson,
): { key: string; refused: "" } | { key: null; refused: string } {
  try {
    const shape = { kind: "json_schema", schema: schema as never, json } as const;
    return { key: grammarKey(compileConstraint({ shape, reasoning: null })), refused: "" };
  } catch (error) {
    if (error instanceof GrammarError) return { key: null, refused: error.message };
    throw error;
  }
}
