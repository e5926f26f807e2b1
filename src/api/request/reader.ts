// Reads a JSON value by its TypeBox schema into a typed value and collects every violation. The only reader of request
// bodies: chat and completions turn violations into a 400 (read-body.ts), training into a 422 (training/validation.ts).
// Unknown object keys are dropped unless the schema sets additionalProperties. Rules between fields are not read here.
//
// Keywords: type, const, enum, properties, required, additionalProperties, patternProperties, maxProperties,
// propertyNames.maxLength, items, minItems, anyOf (+ discriminator), minimum, exclusiveMinimum, maximum, minLength,
// maxLength, pattern (its message is the description), format int64 and uuid. Other formats are documentation.

import type { Static, TSchema } from "typebox";
import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { Bounds, Fail, Scalars } from "./scalars.ts";
import { type Loc, Violations } from "./violations.ts";

export interface Dialect {
  scalars: Scalars;
  /** null counts as absent in fields that do not allow null. */
  nullIsAbsent: boolean;
  maxViolations: number;
}

/** The part of JSON Schema that our schemas use. */
interface Node extends Bounds {
  type?: string;
  title?: string;
  description?: string;
  const?: unknown;
  enum?: readonly unknown[];
  properties?: Record<string, Node>;
  required?: readonly string[];
  additionalProperties?: boolean;
  patternProperties?: Record<string, Node>;
  maxProperties?: number;
  propertyNames?: { maxLength: number };
  items?: Node;
  minItems?: number;
  anyOf?: readonly Node[];
  discriminator?: { propertyName: string };
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** undefined if the value has violations. `at` is the path of the value. */
export function readValue<S extends TSchema>(
  schema: S,
  value: unknown,
  dialect: Dialect,
  violations: Violations,
  at: Loc = [],
): Static<S> | undefined {
  const before = violations.list.length;
  if (violations.full) return undefined;
  const result = new Reading(dialect, violations, at).read(schema as Node, value);
  return violations.list.length === before ? (result as Static<S>) : undefined;
}

class Reading {
  readonly #dialect: Dialect;
  #violations: Violations;
  /** Path of the value being read. */
  readonly #path: (string | number)[];
  #value: unknown;

  constructor(dialect: Dialect, violations: Violations, at: Loc) {
    this.#dialect = dialect;
    this.#violations = violations;
    this.#path = [...at];
  }

  read(node: Node, value: unknown): unknown {
    this.#value = value;
    if (node.anyOf !== undefined) return this.#union(node, node.anyOf, value);
    if (node.const !== undefined || node.enum !== undefined) return this.#literal(node.enum ?? [node.const], value);
    const { scalars } = this.#dialect;
    switch (node.type) {
      case undefined:
        return value;
      case "null":
        return value === null ? null : this.#fail("none_required", "Input should be null");
      case "string":
        return this.#string(node, value);
      case "boolean":
        return scalars.boolean(value, this.#fail);
      case "integer":
        return scalars.integer(value, node, this.#fail);
      case "number":
        return scalars.number(value, node, this.#fail);
      case "array":
        return this.#array(node, value);
      case "object":
        return this.#object(node, value);
      default:
        throw new Error(`schema type ${node.type} is not understood`);
    }
  }

  /** Notes a violation of the value that is read at the moment. */
  readonly #fail: Fail = (type, msg) => {
    this.#violations.add([...this.#path], type, msg, this.#value);
    return undefined;
  };

  #child(step: string | number, node: Node, value: unknown): unknown {
    this.#path.push(step);
    const result = this.read(node, value);
    this.#path.pop();
    return result;
  }

  #literal(allowed: readonly unknown[], value: unknown): unknown {
    if (allowed.includes(value)) return value;
    return this.#fail("literal_error", `Input should be ${allowed.map(shown).join(" or ")}`);
  }

  #string(node: Node, value: unknown): string | undefined {
    if (typeof value !== "string") return this.#fail("string_type", "Input should be a valid string");
    if (value.length < (node.minLength ?? 0)) {
      return this.#fail("string_too_short", `String should have at least ${node.minLength} character`);
    }
    if (value.length > (node.maxLength ?? Number.POSITIVE_INFINITY)) {
      return this.#fail("string_too_long", `String should have at most ${node.maxLength} characters`);
    }
    if (node.pattern !== undefined && !new RegExp(node.pattern, "u").test(value)) {
      return this.#fail("value_error", `Value error, use ${node.description}`);
    }
    if (node.format !== "uuid") return value;
    const id = value.toLowerCase();
    return UUID.test(id) ? id : this.#fail("uuid_parsing", "Input should be a valid UUID");
  }

  #array(node: Node, value: unknown): unknown[] | undefined {
    if (!Array.isArray(value)) return this.#fail("list_type", "Input should be a valid list");
    if (value.length < (node.minItems ?? 0)) {
      return this.#fail("too_short", `List should have at least ${node.minItems} item`);
    }
    const items = node.items ?? {};
    const result: unknown[] = [];
    for (let i = 0; i < value.length && !this.#violations.full; i++) result.push(this.#child(i, items, value[i]));
    return result;
  }

  #object(node: Node, value: unknown): JsonObject | undefined {
    if (!isJsonObject(value)) return this.#fail("dict_type", "Input should be a valid dictionary");
    const { properties, patternProperties } = node;
    if (properties === undefined) {
      return patternProperties === undefined ? value : this.#map(node, Object.values(patternProperties)[0]!, value);
    }
    const result: Record<string, unknown> = node.additionalProperties === true ? { ...value } : {};
    for (const [key, child] of Object.entries(properties)) {
      // an absent field stays absent: for some fields "not given" and null differ
      if (this.#isGiven(value, key, child)) result[key] = this.#child(key, child, value[key]);
      else {
        delete result[key];
        if (node.required?.includes(key)) this.#violations.add([...this.#path, key], "missing", "Field required");
      }
    }
    return result;
  }

  #isGiven(object: JsonObject, key: string, node: Node): boolean {
    if (!Object.hasOwn(object, key) || object[key] === undefined) return false;
    return object[key] !== null || !this.#dialect.nullIsAbsent || allowsNull(node);
  }

  #map(node: Node, values: Node, value: JsonObject): JsonObject | undefined {
    const names = Object.keys(value);
    if (names.length > (node.maxProperties ?? Number.POSITIVE_INFINITY)) {
      return this.#fail("too_long", `Dictionary should have at most ${node.maxProperties} items`);
    }
    const longest = node.propertyNames?.maxLength ?? Number.POSITIVE_INFINITY;
    if (names.some((name) => name.length > longest)) {
      return this.#fail("string_too_long", `Names should have at most ${longest} characters`);
    }
    const entries: [string, unknown][] = [];
    for (const name of names) {
      if (this.#violations.full) break;
      if (this.#isGiven(value, name, values)) entries.push([name, this.#child(name, values, value[name])]);
    }
    return Object.fromEntries(entries);
  }

  /** Without a discriminator the branch of the value's type or shape is read; else the first one without violations. */
  #union(node: Node, branches: readonly Node[], value: unknown): unknown {
    if (isJsonObject(value)) {
      if (node.discriminator !== undefined) return this.read(tagged(node.discriminator, branches, value), value);
      const objects = branches.filter(({ type }) => type === "object");
      if (objects.length > 1) return this.#shaped(objects, value);
    }
    const exact = branches.filter((branch) => branch.type === jsonType(value));
    return exact.length === 1 ? this.read(exact[0]!, value) : this.#firstFitting(branches, value);
  }

  /** The one object whose required fields are all there. */
  #shaped(branches: readonly Node[], value: JsonObject): unknown {
    const fitting = branches.filter((branch) => hasShape(branch, value));
    if (fitting.length === 1) return this.read(fitting[0]!, value);
    const shapes = branches.map(({ title, required = [] }) => `a ${title?.toLowerCase()} (${required.join(", ")})`);
    const problem = fitting.length === 0 ? `neither ${shapes.join(" nor ")}` : `both ${shapes.join(" and ")}`;
    return this.#fail("value_error", `Value error, the element is ${problem}`);
  }

  /** If none fits: the violations of the branch that has the fewest. */
  #firstFitting(branches: readonly Node[], value: unknown): unknown {
    const outer = this.#violations;
    let fewest: Violations | undefined;
    for (const branch of branches) {
      const attempt = new Violations(this.#dialect.maxViolations);
      this.#violations = attempt;
      const result = this.read(branch, value);
      this.#violations = outer;
      if (!attempt.any) return result;
      if (branch.type !== "null" && attempt.list.length < (fewest?.list.length ?? Number.POSITIVE_INFINITY)) {
        fewest = attempt;
      }
    }
    outer.take(fewest);
    return undefined;
  }
}

/** The branch that the tag names. The last one is for every other tag. */
function tagged({ propertyName }: { propertyName: string }, branches: readonly Node[], value: JsonObject): Node {
  const tag = value[propertyName];
  const named = branches.find((branch) => tag !== undefined && branch.properties?.[propertyName]?.const === tag);
  return named ?? branches.at(-1)!;
}

function hasShape({ properties = {}, required = [] }: Node, value: JsonObject): boolean {
  return required.every((key) => {
    const given = value[key] ?? null;
    const { type } = properties[key]!;
    return given !== null && (type !== "object" || isJsonObject(given));
  });
}

function allowsNull(node: Node): boolean {
  if (node.anyOf !== undefined) return node.anyOf.some(allowsNull);
  return node.type === "null" || (node.type === undefined && node.enum === undefined && node.const === undefined);
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function shown(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : String(value);
}
