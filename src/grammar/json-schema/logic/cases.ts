// Turns a schema into a list of alternatives, each a conjunction. References are followed, allOf is merged, and anyOf,
// oneOf, if, not and the dependent keywords become alternatives. A value that satisfies any alternative is valid. A
// negation without an exact form allows fewer values, never more. See docs/reference/structured-output.md.

import { spendEffort } from "../../compile-effort.ts";
import type { SchemaDocument } from "../document.ts";
import { isObject, type JsonValue, type Schema, type SchemaObject, schemaError } from "../keywords.ts";
import { anything, type Conjunction, conjoin, inDeclaredOrder, type Layer } from "./conjunction.ts";
import { ownDemands } from "./demands.ts";
import { clash, differentFrom, rivalsOf } from "./exclusion.ts";
import { has, not } from "./formula.ts";
import { negatedKeyword } from "./negation.ts";
import { negated, type Presence, presenceOf } from "./presence.ts";

const MAX_CASES = 4_000;
/** A formula may constrain the values of this many members. Beyond that, alternatives work better. */
const MAX_VALUES = 6;
/** Keywords that become alternatives or formulas, in the order they are merged. */
const COMPOUND = ["anyOf", "dependentRequired", "dependentSchemas", "dependencies", "if", "oneOf", "not"] as const;

const BRANCHES = ["then", "else"];

export class SchemaCases {
  readonly document: SchemaDocument;
  /** Why parts of the schema allow nothing. The first reason is the best one to report. */
  readonly reasons: string[] = [];
  /** Part of the schema that allows fewer values than it should; null = there is none. */
  narrowed: string | null = null;
  readonly #known = new WeakMap<SchemaObject, readonly Conjunction[] | null>();
  readonly #negations = new WeakMap<SchemaObject, SchemaObject>();
  readonly #conjunctions = new Map<string, SchemaObject>();
  readonly #parts = new WeakMap<SchemaObject, readonly SchemaObject[]>();
  readonly #ids = new WeakMap<SchemaObject, number>();
  #nextId = 0;

  constructor(document: SchemaDocument) {
    this.document = document;
  }

  /** The alternatives of a schema. An empty list means that nothing is valid. */
  of(schema: Schema, path: string): readonly Conjunction[] {
    if (typeof schema === "boolean") return schema ? [anything] : [];
    const known = this.#known.get(schema);
    // A schema that refers to itself in place allows whatever its other alternatives allow.
    if (known !== undefined) return known ?? [];
    this.#known.set(schema, null);
    const cases = this.#expand(schema, path);
    this.#known.set(schema, cases);
    return cases;
  }

  /** A schema that demands both. The same pair always gives the same object, so recursion terminates. */
  both(a: Schema, b: Schema): Schema {
    if (a === false || b === false) return false;
    if (a === true || a === b) return b;
    if (b === true) return a;
    const parts = [...new Set([...(this.#parts.get(a) ?? [a]), ...(this.#parts.get(b) ?? [b])])];
    if (parts.length === 1) return parts[0]!;
    const key = parts.map((part) => this.#idOf(part)).join();
    let schema = this.#conjunctions.get(key);
    if (!schema) {
      schema = { allOf: parts as JsonValue[] };
      this.#conjunctions.set(key, schema);
      this.#parts.set(schema, parts);
    }
    return schema;
  }

  /** The negated schema, always the same object for the same schema. */
  opposite(schema: Schema): Schema {
    if (typeof schema === "boolean") return !schema;
    let made = this.#negations.get(schema);
    if (!made) {
      made = { not: schema };
      this.#negations.set(schema, made);
    }
    return made;
  }

  /** The alternatives for all values the schema rejects. */
  rejected(schema: Schema, path: string): readonly Conjunction[] {
    if (typeof schema === "boolean") return schema ? [] : [anything];
    const presence = presenceOf(this.document, schema, MAX_VALUES, path);
    if (presence) return this.#presenceCases(negated(presence));
    const cases: Conjunction[] = [];
    let dropped: string | null = null;
    const keywords = this.document.keywords(schema, path);
    // A value that only what stands beside the reference rejects may be valid.
    const violable = this.document.maySkipSiblings(keywords) ? ["$ref"] : Object.keys(keywords);
    for (const keyword of violable) {
      const found = negatedKeyword(this, schema, keywords, keyword, path);
      if (found === null) dropped ??= keyword;
      else cases.push(...found);
    }
    if (cases.length === 0 && dropped !== null) {
      throw schemaError(`the schema keyword "not" is not supported around "${dropped}"`, path);
    }
    if (dropped !== null) this.narrow(`not" around "${dropped}`, path);
    return this.#bounded(cases, path).map(silenced);
  }

  /** From here on, nothing found does not mean that there is nothing. */
  narrow(keywords: string, path: string): void {
    this.narrowed ??= `"${keywords}", at ${path},`;
  }

  /** Every way to satisfy one of `a` and one of `b`. */
  product(a: readonly Conjunction[], b: readonly Conjunction[], path: string): readonly Conjunction[] {
    const out: Conjunction[] = [];
    for (const left of a) {
      for (const right of b) {
        spendEffort(100);
        const both = conjoin(left, right);
        const reason = typeof both === "string" ? both : clash(this.document, both);
        if (reason !== null) this.reasons.push(`${reason}, at ${path}`);
        else out.push(both as Conjunction);
      }
      this.#bounded(out, path);
    }
    return out;
  }

  #bounded(cases: readonly Conjunction[], path: string): readonly Conjunction[] {
    if (cases.length > MAX_CASES) throw schemaError(`the schema has more than ${MAX_CASES} alternatives`, path);
    return cases;
  }

  #idOf(schema: SchemaObject): number {
    let id = this.#ids.get(schema);
    if (id === undefined) {
      id = this.#nextId++;
      this.#ids.set(schema, id);
    }
    return id;
  }

  #expand(schema: SchemaObject, path: string): readonly Conjunction[] {
    const keywords = this.document.keywords(schema, path);
    if (this.document.maySkipSiblings(keywords)) this.narrow("$ref", path);
    const own = ownDemands(keywords);
    let cases: readonly Conjunction[] = [own];
    for (const [index, part] of ((keywords.allOf ?? []) as Schema[]).entries()) {
      cases = this.product(cases, this.of(part, `${path}/allOf/${index}`), path);
    }
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      if (keywords[keyword] === undefined) continue;
      const target = this.document.resolve(schema, keyword, path);
      cases = this.product(cases, this.of(target, keywords[keyword] as string), path);
    }
    for (const keyword of COMPOUND) {
      if (keywords[keyword] !== undefined) cases = this.#compound(cases, keyword, keywords, path);
    }
    if (cases.length === 0 && this.document.maySkipSiblings(keywords)) {
      return this.of(this.document.resolve(schema, "$ref", path), keywords.$ref as string);
    }
    if (cases.some(({ layers }) => layers.length > 1)) {
      const layersOf = (part: Schema): readonly Layer[] => this.of(part, path).flatMap(({ layers }) => layers);
      const target = keywords.$ref === undefined ? null : this.document.resolve(schema, "$ref", path);
      cases = inDeclaredOrder(cases, keywords, own.layers, layersOf, target);
    }
    if (keywords.unevaluatedProperties !== undefined) {
      cases = cases.map((each) => withUnevaluatedMembers(each, keywords.unevaluatedProperties as Schema));
    }
    if (keywords.unevaluatedItems !== undefined) {
      const counts = this.document.containsEvaluates;
      cases = cases.map((each) => withUnevaluatedItems(each, keywords.unevaluatedItems as Schema, counts));
    }
    return cases;
  }

  #compound(
    before: readonly Conjunction[],
    keyword: (typeof COMPOUND)[number],
    keywords: SchemaObject,
    path: string,
  ): readonly Conjunction[] {
    const value = keywords[keyword]!;
    const where = `${path}/${keyword}`;
    const alone = Object.fromEntries(
      Object.entries(keywords).filter(([name]) => name === keyword || (keyword === "if" && BRANCHES.includes(name))),
    );
    // Alternatives keep the order in which each declares its properties. Mere presence works better as a formula.
    const conditions = keyword === "not" || (keyword === "if" && this.#onlyPresence(keywords, path));
    const presence = presenceOf(this.document, alone, conditions ? MAX_VALUES : 0, path);
    if (presence) return this.product(before, this.#presenceCases(presence), where);
    switch (keyword) {
      case "anyOf":
        return this.product(before, this.#union(value as Schema[], where), where);
      case "oneOf":
        return this.#exactlyOne(before, value as Schema[], where);
      case "not":
        return this.product(before, this.rejected(value as Schema, where), where);
      case "if": {
        const condition = value as Schema;
        const then = this.product(
          this.of(condition, where),
          this.of((keywords.then ?? true) as Schema, `${path}/then`),
          where,
        );
        const otherwise = this.product(
          this.rejected(condition, where),
          this.of((keywords.else ?? true) as Schema, `${path}/else`),
          where,
        );
        return this.product(before, [...then, ...otherwise], where);
      }
      default: {
        let cases = before;
        for (const [name, demanded] of Object.entries(value as { [name: string]: JsonValue })) {
          const absent: Conjunction = { ...anything, conditions: [not(has(name))], spoken: ["object"] };
          const present: Conjunction = { ...anything, required: [name], types: ["object"] };
          const then = isObject(demanded) || typeof demanded === "boolean" ? demanded : { required: demanded };
          cases = this.product(cases, [absent, ...this.product([present], this.of(then, where), where)], where);
        }
        return cases;
      }
    }
  }

  /** Whether the branches of an `if` only require members and say nothing about their values. */
  #onlyPresence(keywords: SchemaObject, path: string): boolean {
    return BRANCHES.every((name) => presenceOf(this.document, (keywords[name] ?? true) as Schema, 0, path) !== null);
  }

  #presenceCases({ object, others }: Presence): readonly Conjunction[] {
    if (object === true && others.length === 5) return [anything];
    if (object === false) return others.length === 0 ? [] : [{ ...anything, types: others }];
    const all = others.length === 5;
    return [
      {
        ...anything,
        types: all ? null : ["object", ...others],
        spoken: ["object"],
        conditions: object === true ? [] : [object],
      },
    ];
  }

  #union(branches: readonly Schema[], path: string): readonly Conjunction[] {
    const cases = branches.flatMap((branch, index) => this.of(branch, `${path}/${index}`));
    return this.#bounded(withOneList(cases), path);
  }

  #exactlyOne(before: readonly Conjunction[], branches: readonly Schema[], path: string): readonly Conjunction[] {
    const alternatives = branches.map((branch, index) =>
      this.product(before, this.of(branch, `${path}/${index}`), `${path}/${index}`),
    );
    const rivals = rivalsOf(this.document, alternatives);
    const out: Conjunction[] = [];
    for (const [index, cases] of alternatives.entries()) {
      let left = cases;
      for (const other of rivals(index)) {
        if (left.length > 0) left = this.#without(left, branches[other]!, alternatives[other]!, path);
      }
      out.push(...left);
    }
    return this.#bounded(withOneList(out), path);
  }

  /** The values of `cases` that are not among `others`, the alternatives of `branch`. */
  #without(
    cases: readonly Conjunction[],
    branch: Schema,
    others: readonly Conjunction[],
    path: string,
  ): readonly Conjunction[] {
    const out: Conjunction[] = [];
    for (const each of cases) {
      // Whether two alternatives meet does not depend on conditions, which may be many by now.
      const bare = { ...each, conditions: [] };
      const meeting = others.filter((other) => this.product([bare], [{ ...other, conditions: [] }], path).length > 0);
      const apart = meeting.map((other) => differentFrom(this, each, other));
      if (meeting.length === 0) out.push(each);
      else if (apart.every((formula) => formula !== null)) {
        out.push({ ...each, types: ["object"], conditions: [...each.conditions, ...apart] });
      } else out.push(...this.product([each], this.rejected(branch, path), path));
      if (meeting.length > 0) this.narrow("oneOf", path);
    }
    return out;
  }
}

/** Merges the constants among the alternatives into one list. */
function withOneList(cases: readonly Conjunction[]): readonly Conjunction[] {
  const listed = cases.filter(isOnlyListed);
  if (listed.length < 2) return cases;
  const together: Conjunction = { ...anything, listed: listed.flatMap((each) => each.listed!) };
  return [...cases.filter((each) => !isOnlyListed(each)), together];
}

function isOnlyListed(each: Conjunction): boolean {
  return each.listed !== null && each.layers.length === 0 && each.conditions.length === 0 && each.excluded.length === 0;
}

function silenced(each: Conjunction): Conjunction {
  const layers = each.layers.map((layer) => ({ ...layer, silent: true }));
  const tuples = each.tuples.map((tuple) => ({ ...tuple, silent: true }));
  return { ...each, layers, tuples, contains: each.contains.map((demand) => ({ ...demand, silent: true })) };
}

/** unevaluatedProperties sees only this alternative's properties, and no others were evaluated. */
function withUnevaluatedMembers(each: Conjunction, schema: Schema): Conjunction {
  const layers = each.layers.filter(({ silent }) => !silent);
  if (layers.some((layer) => layer.additional !== null)) return each;
  const properties = Object.fromEntries(
    layers.flatMap((layer) => Object.keys(layer.properties)).map((name) => [name, true]),
  );
  const patterns = layers.flatMap((layer) => layer.patterns).map(([pattern]) => [pattern, true] as const);
  const layer: Layer = { properties, patterns, additional: schema };
  return { ...each, layers: [...each.layers, layer], spoken: [...each.spoken, "object"] };
}

/** `contained`: items that match a "contains" are evaluated, too. */
function withUnevaluatedItems(each: Conjunction, schema: Schema, contained: boolean): Conjunction {
  const tuples = each.tuples.filter(({ silent }) => !silent);
  if (tuples.some((tuple) => tuple.rest !== null)) return each;
  const length = Math.max(0, ...tuples.map((tuple) => tuple.prefix.length));
  const matched = contained ? each.contains.flatMap((demand) => (demand.silent ? [] : [demand.schema])) : [];
  const rest = matched.length === 0 ? schema : { anyOf: [...matched, schema] as JsonValue[] };
  const tuple = { prefix: Array.from({ length }, () => true), rest };
  return { ...each, tuples: [...each.tuples, tuple], spoken: [...each.spoken, "array"] };
}
