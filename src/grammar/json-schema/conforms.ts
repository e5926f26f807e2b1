// Checks whether a listed value (enum, const) or a property name is valid. A small validator for exactly the enforced
// keywords. Patterns run on the grammar's own automaton, so no input can make them slow.

import { compileExpressions } from "../automaton/expression-compiler.ts";
import { linkProgram } from "../automaton/link.ts";
import { spendEffort } from "../compile-effort.ts";
import type { Expression } from "../expression.ts";
import { Matcher } from "../match/matcher.ts";
import type { SchemaDocument } from "./document.ts";
import {
  canonicalText,
  distinctJson,
  isObject,
  type JsonValue,
  type Schema,
  type SchemaObject,
  sameJson,
  schemaError,
} from "./keywords.ts";
import { bounds } from "./logic/demands.ts";
import { formatBounds } from "./numbers/integers.ts";
import { isMultiple } from "./numbers/numbers.ts";
import { stringPatterns } from "./strings/strings.ts";

const MAX_DEPTH = 100;

type Valid = (value: JsonValue, schema: JsonValue | undefined) => boolean;

export class Validator {
  readonly #document: SchemaDocument;
  readonly #lists = new WeakMap<readonly JsonValue[], Set<string>>();
  /** By the canonical text of their constant; "" = without one. */
  readonly #branches = new WeakMap<readonly Schema[], Map<string, Schema[]>>();
  readonly #matchers = new Map<string, Matcher[]>();
  #depth = 0;
  /**
   * Drafts 4 to 7: whether what stands beside a $ref is ignored. What must be valid is valid with it; what must not be valid is
   * invalid also without it.
   */
  #lenient = false;
  /** So many times something stood beside a $ref. */
  #neighbours = 0;

  constructor(document: SchemaDocument) {
    this.#document = document;
  }

  conforms(value: JsonValue, schema: Schema, path: string): boolean {
    if (typeof schema === "boolean") return schema;
    if (this.#depth > MAX_DEPTH) throw schemaError(`references nested deeper than ${MAX_DEPTH}`, path.slice(0, 200));
    this.#depth++;
    try {
      return this.#valid(value, schema, path);
    } finally {
      this.#depth--;
    }
  }

  #valid(value: JsonValue, schema: SchemaObject, path: string): boolean {
    spendEffort(6);
    let keywords = this.#document.keywords(schema, path);
    if (this.#document.maySkipSiblings(keywords)) {
      this.#neighbours++;
      if (this.#lenient) keywords = { $ref: keywords.$ref! };
    }
    const valid: Valid = (inner, by) => this.conforms(inner, (by ?? true) as Schema, path);
    for (const keyword of ["unevaluatedItems", "unevaluatedProperties"]) {
      if (keywords[keyword] !== undefined) {
        throw schemaError(`the schema keyword "${keyword}" is not supported beside "enum" or "const"`, path);
      }
    }
    if (keywords.type !== undefined && !hasType(value, keywords)) return false;
    if (keywords.const !== undefined && !sameJson(keywords.const, value)) return false;
    if (keywords.enum !== undefined && !this.#isListed(value, keywords.enum as JsonValue[])) return false;
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      if (
        keywords[keyword] !== undefined &&
        !valid(value, this.#document.resolve(schema, keyword, path) as JsonValue)
      ) {
        return false;
      }
    }
    if (!this.#combinationsHold(value, keywords, valid)) return false;
    if (typeof value === "number") return numberConforms(value, keywords);
    if (typeof value === "string") return this.#stringConforms(value, keywords, path);
    if (Array.isArray(value)) return arrayConforms(value, keywords, valid);
    return isObject(value) ? objectConforms(value, keywords, valid) : true;
  }

  /** Looks values up in a set, because lists may have a hundred thousand of them. */
  #isListed(value: JsonValue, values: readonly JsonValue[]): boolean {
    let keys = this.#lists.get(values);
    if (!keys) {
      keys = new Set(values.map(canonicalText));
      this.#lists.set(values, keys);
    }
    return keys.has(canonicalText(value));
  }

  #combinationsHold(value: JsonValue, keywords: SchemaObject, valid: Valid): boolean {
    const { allOf, anyOf, oneOf, not, if: condition } = keywords;
    if (allOf !== undefined && !(allOf as JsonValue[]).every((part) => valid(value, part))) return false;
    if (anyOf !== undefined && !this.#candidates(value, anyOf as Schema[]).some((branch) => valid(value, branch))) {
      return false;
    }
    if (oneOf !== undefined) {
      const branches = this.#candidates(value, oneOf as Schema[]);
      const [own, other] = this.#bothReadings(() => branches.filter((branch) => valid(value, branch)).length);
      if (this.#lenient ? own === 0 || other > 1 : own !== 1 || other !== 1) return false;
    }
    if (not !== undefined && this.#bothReadings(() => valid(value, not))[1]) return false;
    if (condition === undefined) return true;
    const ways = new Set(this.#bothReadings(() => valid(value, condition)));
    const results = [...ways].map((holds) => valid(value, holds ? keywords.then : keywords.else));
    return this.#lenient ? results.includes(true) : !results.includes(false);
  }

  /** What a question answers in this reading of a $ref with neighbours, and in the other one. */
  #bothReadings<Answer>(ask: () => Answer): [own: Answer, other: Answer] {
    const before = this.#neighbours;
    const own = ask();
    // without neighbours there is one reading: to ask twice at every depth would double the work each time
    if (this.#neighbours === before) return [own, own];
    this.#lenient = !this.#lenient;
    try {
      return [own, ask()];
    } finally {
      this.#lenient = !this.#lenient;
    }
  }

  /** The branches that may hold: those without a constant, and those with this one. */
  #candidates(value: JsonValue, branches: readonly Schema[]): readonly Schema[] {
    let known = this.#branches.get(branches);
    if (known === undefined) {
      known = new Map();
      for (const branch of branches) {
        const constant = typeof branch === "object" && Object.hasOwn(branch, "const");
        const key = constant ? canonicalText(branch.const!) : "";
        known.set(key, [...(known.get(key) ?? []), branch]);
      }
      this.#branches.set(branches, known);
    }
    return [...(known.get("") ?? []), ...(known.get(canonicalText(value)) ?? [])];
  }

  #stringConforms(value: string, keywords: SchemaObject, path: string): boolean {
    const length = Array.from(value).length;
    if (length < ((keywords.minLength ?? 0) as number) || length > ((keywords.maxLength ?? length) as number)) {
      return false;
    }
    const patterns = keywords.pattern === undefined ? [] : [keywords.pattern as string];
    const formats = keywords.format === undefined ? [] : [keywords.format as string];
    if (patterns.length + formats.length === 0) return true;
    const key = JSON.stringify([patterns, formats]);
    let matchers = this.#matchers.get(key);
    if (!matchers) {
      matchers = stringPatterns({ patterns, formats }, path).flatMap((root) => matcherOf(root) ?? []);
      this.#matchers.set(key, matchers);
    }
    const bytes = new TextEncoder().encode(value);
    return matchers.every((matcher) => matcher.advanceBytes(matcher.start(), bytes)?.accepting ?? false);
  }
}

function matcherOf(root: Expression): Matcher {
  return new Matcher(linkProgram(compileExpressions({ rules: [], root })));
}

function hasType(value: JsonValue, keywords: SchemaObject): boolean {
  const types = [keywords.type!].flat() as string[];
  if (value === null) return types.includes("null") || keywords.nullable === true;
  if (Array.isArray(value)) return types.includes("array");
  if (typeof value === "number") {
    return types.includes("number") || (types.includes("integer") && Number.isInteger(value));
  }
  return types.includes(typeof value);
}

function numberConforms(value: number, keywords: SchemaObject): boolean {
  const [low, high] = bounds(keywords);
  const [least, greatest] = formatBounds(String(keywords.format));
  return (
    value >= least &&
    value <= greatest &&
    (low === null || value > low.value || (value === low.value && !low.exclusive)) &&
    (high === null || value < high.value || (value === high.value && !high.exclusive)) &&
    (keywords.multipleOf === undefined || isMultiple(value, keywords.multipleOf as number))
  );
}

function arrayConforms(value: readonly JsonValue[], keywords: SchemaObject, valid: Valid): boolean {
  const older = Array.isArray(keywords.items);
  const prefix = (older ? keywords.items : (keywords.prefixItems ?? [])) as JsonValue[];
  const rest = older ? keywords.additionalItems : (keywords.items as JsonValue | undefined);
  if (value.length < ((keywords.minItems ?? 0) as number)) return false;
  if (value.length > ((keywords.maxItems ?? value.length) as number)) return false;
  if (keywords.uniqueItems === true && distinctJson(value).length < value.length) return false;
  if (keywords.contains !== undefined) {
    const found = value.filter((item) => valid(item, keywords.contains)).length;
    if (found < ((keywords.minContains ?? 1) as number)) return false;
    if (found > ((keywords.maxContains ?? found) as number)) return false;
  }
  return value.every((item, index) => valid(item, index < prefix.length ? prefix[index] : rest));
}

function objectConforms(value: { [key: string]: JsonValue }, keywords: SchemaObject, valid: Valid): boolean {
  const properties = (keywords.properties ?? {}) as Record<string, JsonValue>;
  const names = Object.keys(value);
  if (((keywords.required ?? []) as string[]).some((name) => !Object.hasOwn(value, name))) return false;
  if (names.length < ((keywords.minProperties ?? 0) as number)) return false;
  if (names.length > ((keywords.maxProperties ?? names.length) as number)) return false;
  for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
    for (const [name, demanded] of Object.entries((keywords[keyword] ?? {}) as Record<string, JsonValue>)) {
      if (!Object.hasOwn(value, name)) continue;
      if (!valid(value, Array.isArray(demanded) ? { required: demanded } : demanded)) return false;
    }
  }
  const patterns = Object.entries((keywords.patternProperties ?? {}) as Record<string, JsonValue>);
  return names.every((name) => {
    const by = patterns.filter(([pattern]) => valid(name, { pattern })).map(([, demanded]) => demanded);
    if (Object.hasOwn(properties, name)) by.push(properties[name]!);
    return (
      valid(name, keywords.propertyNames) &&
      (by.length > 0 ? by : [keywords.additionalProperties]).every((demanded) => valid(value[name]!, demanded))
    );
  });
}
