// Object schemas: declared properties in their order, optional ones left out freely, further ones where the schema allows
// them. The content is a chain of rules over (next property, members written so far).

import {
  type CharDfa,
  choice,
  type Expression,
  empty,
  type GraphEdge,
  isNever,
  never,
  repeat,
  sequence,
  text,
} from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { conforms } from "./conforms.ts";
import { listedValues } from "./disjoint.ts";
import type { JsonText } from "./json-text.ts";
import { type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import { both } from "./merge.ts";
import { nameClasses, namePatterns, nameSchema, otherNames, unlessNone } from "./property-names.ts";
import type { SchemaCompiler } from "./schema-compiler.ts";

/** How an object is written: as JSON, or as the arguments of a call. */
export interface ObjectStyle {
  member(name: string, value: Expression): Expression;
  /** A member with one of these keys; null = there are none in this style. */
  extra(keys: CharDfa, value: Expression): Expression | null;
  readonly comma: Expression;
  readonly none: string;
  wrap(content: Expression): Expression;
}

function jsonStyle(json: JsonText): ObjectStyle {
  return {
    member: (name, value) => json.member(text(JSON.stringify(name)), value),
    extra: (keys, value) => json.member(json.quoted({ kind: "dfa", dfa: keys, json: true }), value),
    comma: json.comma,
    none: "{}",
    wrap: (content) => json.braces(content),
  };
}

interface Member {
  readonly expression: Expression;
  readonly required: boolean;
}

const MAX_NODES = 20_000;

export function compileObject(
  compiler: SchemaCompiler,
  schema: SchemaObject,
  path: string,
  given?: ObjectStyle,
): Expression {
  const style = given ?? jsonStyle(compiler.text);
  const min = (schema.minProperties ?? 0) as number;
  const max = (schema.maxProperties ?? null) as number | null;
  const additional = additionalSchema(compiler, schema);
  const names = nameSchema(compiler, schema, path);
  const patterns = namePatterns(schema, path);
  const byPattern = (name: string): Schema[] =>
    patterns.filter(([pattern]) => conforms(compiler, name, { pattern }, path)).map(([, by]) => by);
  const declared = declaredProperties(schema, byPattern, path);
  const free = min === 0 && max === null && names === null && patterns.length === 0;
  if (declared.length === 0 && additional === true && free && !given) return compiler.text.anyObject;
  const listed = names && listedValues(names);
  if (listed !== null) {
    const known = new Set(declared.map(([name]) => name));
    for (const name of listed) {
      if (typeof name === "string" && !known.has(name)) declared.push([name, unlessNone(byPattern(name), additional)]);
    }
  }
  const required = new Set((schema.required ?? []) as string[]);
  const members: Member[] = [];
  for (const [name, property] of declared) {
    const value =
      names === null || conforms(compiler, name, names, path)
        ? compiler.compile(property, `${path}/properties/${name}`)
        : never;
    if (isNever(value) && required.has(name)) return never;
    if (isNever(value)) continue;
    // Reached from several nodes of the graph, so it is stored once.
    members.push({ expression: compiler.text.builder.rule(style.member(name, value)), required: required.has(name) });
  }
  const furtherMembers = (): Expression | null => {
    const options: Expression[] = [];
    for (const { keys, by } of nameClasses(otherNames(declared, names, path), patterns, path)) {
      const value = unlessNone(by, additional);
      const where = by.length === 0 ? `${path}/additionalProperties` : `${path}/patternProperties`;
      const expression = value === false ? never : compiler.compile(value, where);
      const member = isNever(expression) ? null : style.extra(keys, expression);
      if (member !== null) options.push(member);
    }
    return options.length === 0 ? null : choice(...options);
  };
  const extra = listed === null ? furtherMembers() : null;
  const content = new ObjectContent(style.comma, members, extra, min, max);
  const options: Expression[] = [];
  if (min === 0 && !members.some((member) => member.required)) options.push(text(style.none));
  if (max !== 0 && (members.length > 0 || extra !== null)) options.push(style.wrap(content.expression()));
  return choice(...options);
}

/** At least one member, between min and max of them: a graph over (next member, members written so far). */
class ObjectContent {
  readonly #comma: Expression;
  readonly #members: readonly Member[];
  readonly #extra: Expression | null;
  readonly #min: number;
  readonly #max: number | null;
  /** Counts are kept apart only as far as a bound needs it. */
  readonly #cap: number;
  readonly #nodes = new Map<string, number>();
  readonly #edges: GraphEdge[] = [];

  constructor(
    comma: Expression,
    members: readonly Member[],
    extra: Expression | null,
    min: number,
    max: number | null,
  ) {
    this.#comma = comma;
    this.#members = members;
    this.#extra = extra;
    // A minimum that the required members reach anyway needs no counting.
    this.#min = min > members.filter((member) => member.required).length ? min : 0;
    this.#max = max !== null && (extra !== null || max < members.length) ? max : null;
    this.#cap = Math.max(1, this.#min, this.#max ?? 0);
  }

  expression(): Expression {
    const levels: [index: number, count: number][] = [[0, 0]];
    this.#node(0, 0, []);
    for (const [index, count] of levels) this.#leave(index, count, levels);
    return { kind: "graph", nodes: this.#nodes.size + 1, edges: this.#edges };
  }

  /** Node 0 is the start, node 1 the end of the graph. */
  #node(index: number, count: number, levels: [number, number][]): number {
    const key = `${index}.${count}`;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      if (this.#nodes.size > MAX_NODES)
        throw new GrammarError('"minProperties" or "maxProperties" is too large for this object');
      node = this.#nodes.size === 0 ? 0 : this.#nodes.size + 1;
      this.#nodes.set(key, node);
      levels.push([index, count]);
    }
    return node;
  }

  #leave(index: number, count: number, levels: [number, number][]): void {
    const from = this.#nodes.get(`${index}.${count}`)!;
    const member = this.#members[index];
    if (!member) {
      this.#edges.push({ from, to: 1, expression: this.#extras(count) });
      return;
    }
    if (this.#max === null || count < this.#max) {
      const to = this.#node(index + 1, Math.min(count + 1, this.#cap), levels);
      this.#edges.push({ from, to, expression: this.#separated(member.expression, count) });
    }
    if (!member.required) this.#edges.push({ from, to: this.#node(index + 1, count, levels), expression: empty });
  }

  /** After the declared members: the end, where enough were written, or further members. */
  #extras(count: number): Expression {
    const stop = count > 0 && count >= this.#min ? empty : never;
    const room = this.#max === null ? null : this.#max - count;
    // Further keys may repeat each other, so together they only count as one towards the minimum.
    if (!this.#extra || room === 0 || count + 1 < this.#min) return stop;
    const more = repeat(this.#separated(this.#extra, 1), 0, room === null ? null : room - 1);
    const some = sequence(this.#separated(this.#extra, count), more);
    return isNever(stop) ? some : choice(some, stop);
  }

  #separated(member: Expression, count: number): Expression {
    return count === 0 ? member : sequence(this.#comma, member);
  }
}

/** Declared properties plus required names without a declaration. */
function declaredProperties(
  schema: SchemaObject,
  byPattern: (name: string) => Schema[],
  path: string,
): [string, Schema][] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const entries = Object.entries(properties).map(([name, property]): [string, Schema] => [
    name,
    byPattern(name).reduce(both, property),
  ]);
  for (const name of (schema.required ?? []) as string[]) {
    if (Object.hasOwn(properties, name)) continue;
    const demanded = unlessNone(byPattern(name), (schema.additionalProperties ?? true) as Schema);
    if (demanded === false) {
      throw schemaError(
        `the required property ${JSON.stringify(name.slice(0, 40))} is neither declared nor allowed`,
        path,
      );
    }
    entries.push([name, demanded]);
  }
  return entries;
}

/** Undeclared properties are generated only when asked for, or when nothing at all is declared. */
function additionalSchema(compiler: SchemaCompiler, schema: SchemaObject): Schema {
  if (schema.additionalProperties !== undefined) return schema.additionalProperties as Schema;
  if (compiler.options.closedObjects || schema.patternProperties !== undefined) return false;
  const named = Object.keys((schema.properties ?? {}) as object).length + ((schema.required ?? []) as string[]).length;
  return named === 0;
}
