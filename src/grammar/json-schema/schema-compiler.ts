// Compiles JSON Schema to an expression over JSON text. Every generated text validates. Where a schema leaves room (no
// type, undeclared properties), the narrower, more useful reading is generated. See docs/reference/structured-output.md.

import type { JsonOptions } from "../constraint.ts";
import {
  choice,
  type Expression,
  type GrammarBuilder,
  isNever,
  never,
  type RuleId,
  text,
  texts,
} from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { compileArray } from "./arrays/arrays.ts";
import { Validator } from "./conforms.ts";
import type { SchemaContext, SchemaOptions } from "./context.ts";
import { SchemaDocument } from "./document.ts";
import { JsonText, jsonLayout } from "./json-text.ts";
import { isSchema, type JsonValue, type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import { SchemaCases } from "./logic/cases.ts";
import { ALL_TYPES, type Conjunction, generatedTypes, type TypeName } from "./logic/conjunction.ts";
import { compileNumber } from "./numbers/numbers.ts";
import { compileObject } from "./objects/objects.ts";
import { compileString } from "./strings/strings.ts";

const MAX_DEPTH = 200;
const MAX_SCHEMAS = 20_000;

export class SchemaCompiler implements SchemaContext {
  readonly text: JsonText;
  readonly options: SchemaOptions;
  readonly cases: SchemaCases;
  readonly #document: SchemaDocument;
  readonly #validator: Validator;
  /** Schemas seen before: their expression, or the rule that stands for them during compilation. */
  readonly #known = new Map<SchemaObject, { expression: Expression | null; rule: RuleId | null }>();
  #depth = 0;
  #count = 0;

  constructor(root: Schema, options: SchemaOptions, builder: GrammarBuilder) {
    this.text = new JsonText(builder, options.layout);
    this.options = options;
    this.#document = new SchemaDocument(root);
    this.#validator = new Validator(this.#document);
    this.cases = new SchemaCases(this.#document);
  }

  /** Keywords that no draft defines and that therefore had no effect. */
  get ignored(): ReadonlySet<string> {
    return this.#document.ignored;
  }

  /** Throws, with the reason, if the schema allows nothing at all. */
  compileRoot(schema: Schema): Expression {
    const expression = this.compile(schema, "#");
    if (!isNever(expression)) return expression;
    const { reasons, narrowed } = this.cases;
    const reason = reasons[0] === undefined ? "" : `: ${reasons[0]}`;
    if (narrowed === null) throw new GrammarError(`the constraint can never be satisfied${reason}`);
    throw new GrammarError(`only a part of ${narrowed} is supported, and no value fits that part${reason}`);
  }

  compile(schema: Schema, path: string): Expression {
    if (schema === true) return this.text.value;
    if (schema === false) return never;
    const known = this.#known.get(schema);
    if (known) return this.#again(known);
    if (++this.#count > MAX_SCHEMAS) throw new GrammarError(`the schema has more than ${MAX_SCHEMAS} parts`);
    if (this.#depth >= MAX_DEPTH) {
      throw schemaError(`the schema is nested deeper than ${MAX_DEPTH}`, path.slice(0, 200));
    }
    this.#depth++;
    const entry: { expression: Expression | null; rule: RuleId | null } = { expression: null, rule: null };
    this.#known.set(schema, entry);
    entry.expression = this.#compile(schema, path);
    if (entry.rule !== null) this.text.builder.define(entry.rule, entry.expression);
    this.#depth--;
    return entry.rule === null ? entry.expression : { kind: "rule", rule: entry.rule };
  }

  conforms(value: JsonValue, schema: Schema, path: string): boolean {
    return this.#validator.conforms(value, schema, path);
  }

  impossible(reason: string, path: string): Expression {
    this.cases.reasons.push(`${reason}, at ${path}`);
    return never;
  }

  /** From its second use, a schema becomes a rule that all users share. */
  #again(entry: { expression: Expression | null; rule: RuleId | null }): Expression {
    if (entry.expression !== null && isNever(entry.expression)) return never;
    if (entry.rule === null) {
      entry.rule = this.text.builder.declare();
      if (entry.expression !== null) this.text.builder.define(entry.rule, entry.expression);
    }
    return { kind: "rule", rule: entry.rule };
  }

  #compile(schema: SchemaObject, path: string): Expression {
    const keywords = this.#document.keywords(schema, path);
    if (Object.keys(keywords).length === 1 && keywords.$ref !== undefined) {
      return this.compile(this.#document.resolve(schema, "$ref", path), keywords.$ref as string);
    }
    const options: Expression[] = [];
    const listed: JsonValue[] = [];
    for (const each of this.cases.of(schema, path)) {
      if (each.listed !== null) listed.push(...each.listed);
      else options.push(...this.#alternative(each, path));
    }
    if (listed.length > 0) options.push(this.#listed(listed, schema, path));
    const some = options.filter((option) => !isNever(option));
    if (some.length === 0 && this.#document.maySkipSiblings(keywords)) {
      return this.compile(this.#document.resolve(schema, "$ref", path), keywords.$ref as string);
    }
    return choice(...some);
  }

  /** If no value of the types to generate is valid, one of another type may be. */
  #alternative(each: Conjunction, path: string): Expression[] {
    const usual = generatedTypes(each);
    const options = usual.map((type) => this.#typed(type, each, path));
    if (each.types !== null || !options.every(isNever)) return options;
    return ALL_TYPES.filter((type) => !usual.includes(type)).map((type) => this.#typed(type, each, path));
  }

  /** Keeps the values that are valid. */
  #listed(values: readonly JsonValue[], schema: SchemaObject, path: string): Expression {
    const beside = onlyListed(this.#document.keywords(schema, path)) ? true : schema;
    const fitting = values.filter((value) => this.conforms(value, beside, path));
    if (fitting.length === 0) return this.impossible("no listed value fits the rest of the schema", path);
    if (fitting.some(hasInexactInteger)) {
      throw schemaError("integers beyond 2^53 in enum and const lose digits when parsed: list them as strings", path);
    }
    const scalars = fitting.filter((value) => typeof value !== "object" || value === null);
    const nested = fitting.filter((value) => typeof value === "object" && value !== null);
    const options = nested.map((value) => this.text.literal(value));
    if (scalars.length > 0) options.push(texts(scalars.map((value) => this.text.scalar(value))));
    return choice(...options);
  }

  #typed(type: TypeName, all: Conjunction, path: string): Expression {
    switch (type) {
      case "null":
        return all.excluded.includes(null) ? never : text(this.text.scalar(null));
      case "boolean":
        return choice(
          ...[true, false]
            .filter((value) => !all.excluded.includes(value))
            .map((value) => text(this.text.scalar(value))),
        );
      case "string":
        return compileString(this, all, path);
      case "number":
        return compileNumber(this, all, path);
      case "array":
        return compileArray(this, all, path);
      default:
        return compileObject(this, all, path);
    }
  }
}

/** Whether the schema is a single list. Its values then need no check, however many there are. */
function onlyListed(keywords: SchemaObject): boolean {
  const names = Object.keys(keywords);
  return names.length === 1 && (names[0] === "enum" || names[0] === "const");
}

/** A double holds only 53 bits, so the client may have sent a different integer. */
function hasInexactInteger(value: JsonValue): boolean {
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) > 2 ** 53;
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexactInteger);
}

// Translates one schema within a grammar. Code outside this folder enters here.

/** Receives the keywords that no draft defines. */
export type OnIgnored = (keywords: ReadonlySet<string>) => void;

export function schemaExpression(
  schema: JsonValue,
  options: JsonOptions,
  builder: GrammarBuilder,
  onIgnored: OnIgnored,
): Expression {
  if (!isSchema(schema)) throw new GrammarError("a JSON schema must be an object");
  const { closedObjects, freeOrder = false, openObjects = false } = options;
  const chosen = { layout: jsonLayout(options), closedObjects, freeOrder, openObjects };
  const compiler = new SchemaCompiler(schema, chosen, builder);
  const expression = compiler.compileRoot(schema);
  if (compiler.ignored.size > 0) onIgnored(compiler.ignored);
  return expression;
}
