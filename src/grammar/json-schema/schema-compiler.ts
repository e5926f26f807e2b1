// JSON Schema to an expression over JSON text. Everything generated validates; where a schema leaves room (no type given,
// undeclared properties) the narrower, more useful reading is generated. See docs/reference/structured-output.md.

import { choice, type Expression, type GrammarBuilder, isNever, never, text, texts } from "../expression.ts";
import { Contradiction, GrammarError } from "../grammar-error.ts";
import { compileArray } from "./arrays.ts";
import { conforms } from "./conforms.ts";
import { exclusive, listedValues } from "./disjoint.ts";
import type { JsonLayout } from "./json-layout.ts";
import { JsonText } from "./json-text.ts";
import { checkedKeywords, type JsonValue, type Schema, type SchemaObject, schemaError } from "./keywords.ts";
import { mergeSchemas, typeList } from "./merge.ts";
import { compileNumber } from "./numeric-schema.ts";
import { compileObject } from "./objects.ts";
import { References } from "./references.ts";
import { compileString } from "./strings.ts";

const MAX_DEPTH = 200;
const MAX_SCHEMAS = 20_000;

export interface SchemaOptions {
  layout: JsonLayout;
  /** A missing additionalProperties means false, even for objects that declare no properties. */
  closedObjects: boolean;
}

export class SchemaCompiler {
  readonly text: JsonText;
  readonly options: SchemaOptions;
  readonly #references: References;
  readonly #scope: string;
  #depth = 0;
  #count = 0;

  /** `scope` keeps the references of several schemas in one grammar apart. */
  constructor(root: Schema, options: SchemaOptions, builder: GrammarBuilder, scope = "") {
    this.text = new JsonText(builder, options.layout);
    this.options = options;
    this.#references = new References(root);
    this.#scope = scope;
  }

  compile(schema: Schema, path: string): Expression {
    if (schema === true) return this.text.value;
    if (schema === false) return never;
    if (++this.#count > MAX_SCHEMAS) throw new GrammarError(`the schema has more than ${MAX_SCHEMAS} parts`);
    if (this.#depth >= MAX_DEPTH)
      throw schemaError(`the schema is nested deeper than ${MAX_DEPTH}`, path.slice(0, 200));
    this.#depth++;
    const expression = this.#compile(checkedKeywords(schema, path), path);
    this.#depth--;
    return expression;
  }

  /** Enforced keywords of a schema with its references followed and allOf merged in. `false` = nothing is valid. */
  flatten(schema: Schema, path: string, seen: readonly string[] = []): SchemaObject | false {
    if (typeof schema === "boolean") return schema ? {} : false;
    const { $ref, allOf, ...rest } = checkedKeywords(schema, path);
    let merged: SchemaObject = rest;
    const parts: [Schema, string, readonly string[]][] = ((allOf ?? []) as Schema[]).map((part, index) => [
      part,
      `${path}/allOf/${index}`,
      seen,
    ]);
    if ($ref !== undefined) {
      const reference = $ref as string;
      if (seen.includes(reference)) throw schemaError(`"$ref" ${reference} refers to itself`, path);
      parts.push([this.#references.resolve(reference, path), reference, [...seen, reference]]);
    }
    for (const [part, where, trail] of parts) {
      if (trail.length > MAX_DEPTH) throw schemaError(`references nested deeper than ${MAX_DEPTH}`, path);
      const flat = this.flatten(part, where, trail);
      if (flat === false) return false;
      merged = mergeSchemas(merged, flat, path);
    }
    return merged;
  }

  #compile(schema: SchemaObject, path: string): Expression {
    const keywords = Object.keys(schema);
    if (keywords.length === 1 && typeof schema.$ref === "string") return this.#reference(schema.$ref, path);
    const flat = schema.$ref !== undefined || schema.allOf !== undefined ? this.flatten(schema, path) : schema;
    if (flat === false) return never;
    const { anyOf, oneOf, ...rest } = flat;
    if (anyOf !== undefined) {
      const base: SchemaObject = oneOf === undefined ? rest : { ...rest, oneOf };
      return choice(...this.#branches(base, anyOf as Schema[], `${path}/anyOf`));
    }
    if (oneOf !== undefined) return this.#oneOf(rest, oneOf as Schema[], `${path}/oneOf`);
    return this.#plain(rest, path);
  }

  #reference(reference: string, path: string): Expression {
    const target = this.#references.resolve(reference, path);
    return this.text.builder.named(`${this.#scope}$ref ${reference}`, () => this.compile(target, reference));
  }

  #branches(base: SchemaObject, branches: readonly Schema[], path: string): Expression[] {
    const alone = Object.keys(base).length === 0;
    return branches
      .map((branch, index) => {
        const whole = alone ? branch : { allOf: [base as JsonValue, branch as JsonValue] };
        const where = `${path}/${index}`;
        return this.#combined(whole, where) === false ? never : this.compile(whole, where);
      })
      .filter((expression) => !isNever(expression));
  }

  /** As flatten, for an alternative: one that contradicts what stands beside it is left out rather than an error. */
  #combined(schema: Schema, path: string): SchemaObject | false {
    if (typeof schema === "boolean") return schema ? {} : false;
    if (schema.allOf === undefined) return schema;
    try {
      const flat = this.flatten(schema, path);
      const listed = flat === false ? null : listedValues(flat);
      return listed === null || listed.some((value) => conforms(this, value, flat, path)) ? flat : false;
    } catch (error) {
      if (error instanceof Contradiction) return false;
      throw error;
    }
  }

  #oneOf(base: SchemaObject, branches: readonly Schema[], path: string): Expression {
    const flat = branches.map((branch, index) =>
      this.#combined({ allOf: [base as JsonValue, branch as JsonValue] }, `${path}/${index}`),
    );
    for (const [i, a] of flat.entries()) {
      for (const [j, b] of flat.entries()) {
        if (i !== j && a && b && !exclusive(this, a, b, path)) {
          throw schemaError(
            `the schema keyword "oneOf" is only supported when its alternatives exclude each other; ${Math.min(i, j)} and ${Math.max(i, j)} may overlap: use "anyOf"`,
            path,
          );
        }
      }
    }
    return choice(...this.#branches(base, branches, path));
  }

  #plain(schema: SchemaObject, path: string): Expression {
    const { const: only, ...others } = schema;
    if (only !== undefined || schema.enum !== undefined) return this.#listed(only, others, path);
    const types = typesOf(schema);
    return choice(...types.map((type) => this.#typed(type, schema, path)).filter((option) => !isNever(option)));
  }

  #listed(only: JsonValue | undefined, schema: SchemaObject, path: string): Expression {
    const { enum: listed, ...rest } = schema;
    const values = only === undefined ? (listed as JsonValue[]) : [only];
    // Only a constant has to be looked for in the list: for each of a hundred thousand values that would take minutes.
    const beside = only === undefined || listed === undefined ? rest : schema;
    const fitting = values.filter((value) => conforms(this, value, beside, path));
    if (fitting.length === 0) throw schemaError("no listed value fits the rest of the schema", path);
    if (fitting.some(hasInexactInteger)) {
      throw schemaError("integers beyond 2^53 in enum and const lose digits on their way: list them as strings", path);
    }
    const scalars = fitting.filter((value) => typeof value !== "object" || value === null);
    const nested = fitting.filter((value) => typeof value === "object" && value !== null);
    const options = nested.map((value) => this.text.literal(value));
    if (scalars.length > 0) options.push(texts(scalars.map((value) => this.text.scalar(value))));
    return choice(...options);
  }

  #typed(type: string, schema: SchemaObject, path: string): Expression {
    switch (type) {
      case "null":
        return text(this.text.scalar(null));
      case "boolean":
        return texts([this.text.scalar(true), this.text.scalar(false)]);
      case "string":
        return compileString(this.text, schema, path);
      case "integer":
      case "number":
        return compileNumber(this.text, schema, type, path);
      case "array":
        return compileArray(this, schema, path);
      default:
        return compileObject(this, schema, path);
    }
  }
}

/** What was sent may have been another integer: a double holds no more than 53 bits. */
function hasInexactInteger(value: JsonValue): boolean {
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) > 2 ** 53;
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexactInteger);
}

const keywordTypes: Record<string, readonly string[]> = {
  object: [
    "properties",
    "patternProperties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "propertyNames",
  ],
  array: ["items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"],
  string: ["pattern", "format", "minLength", "maxLength"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
};

/** The types to generate: as declared; else those the other keywords speak of; else all. */
export function typesOf(schema: SchemaObject): string[] {
  const all = ["object", "array", "string", "number", "boolean", "null"];
  const declared = schema.type === undefined ? null : typeList(schema.type);
  const spoken = Object.keys(keywordTypes).filter((type) =>
    keywordTypes[type]!.some((keyword) => schema[keyword] !== undefined),
  );
  const types = declared ?? (spoken.length > 0 ? spoken : all);
  const withNull = schema.nullable === true && !types.includes("null") ? [...types, "null"] : types;
  return withNull.filter((type) => type !== "integer" || !withNull.includes("number"));
}
