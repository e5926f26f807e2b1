// Reads a JSON value by its TypeBox schema into a typed value and collects the violations. All request bodies are read
// here: chat and completions turn violations into a 400 (body.ts), training into a 422 (training/validation.ts).
// Unknown object keys are dropped unless the schema sets additionalProperties. Rules between fields live elsewhere.
//
// Keywords: type, const, enum, properties, required, additionalProperties, patternProperties, maxProperties,
// propertyNames.maxLength, items, minItems, maxItems, anyOf (+ discriminator), minimum, exclusiveMinimum, maximum,
// minLength, maxLength, x-max-bytes (in UTF-8), pattern and not (the description is the message), format int64 and uuid.
// Other formats are documentation.
import type { Static, TSchema } from "typebox";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { type Bounds, type Fail, type Loc, type Scalars, Violations } from "./scalars.ts";

export interface ValueRules {
  scalars: Scalars;
  /** null counts as absent in fields that do not allow null. */
  nullIsAbsent: boolean;
  maxViolations: number;
}

/** The subset of JSON Schema that our schemas use. */
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
  maxItems?: number;
  anyOf?: readonly Node[];
  discriminator?: { propertyName: string };
  not?: object;
  minLength?: number;
  maxLength?: number;
  "x-max-bytes"?: number;
  pattern?: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns undefined if the value has violations. `at` is the value's path. */
export function readValue<S extends TSchema>(
  schema: S,
  value: unknown,
  dialect: ValueRules,
  violations: Violations,
  at: Loc = [],
): Static<S> | undefined {
  if (violations.full) return undefined;
  const before = violations.list.length;
  const result = readerOf(schema as Node)(value, new Reading(dialect, violations, at));
  return violations.list.length === before ? (result as Static<S>) : undefined;
}

/** Reads one value by its schema, or records its violations. */
type Reader = (value: unknown, reading: Reading) => unknown;

class Reading {
  readonly dialect: ValueRules;
  violations: Violations;
  /** Path of the value being read. */
  readonly path: (string | number)[];
  /** The value that `fail` reports. */
  value: unknown;

  constructor(dialect: ValueRules, violations: Violations, at: Loc) {
    this.dialect = dialect;
    this.violations = violations;
    this.path = [...at];
  }

  readonly fail: Fail = (type, msg) => {
    this.violations.add([...this.path], type, msg, this.value);
    return undefined;
  };

  child(step: string | number, read: Reader, value: unknown): unknown {
    this.path.push(step);
    const result = read(value, this);
    this.path.pop();
    return result;
  }

  isGiven(object: JsonObject, key: string, nullable: boolean): boolean {
    const value = object[key];
    if (value === undefined || !Object.hasOwn(object, key)) return false;
    return value !== null || nullable || !this.dialect.nullIsAbsent;
  }
}

/** Schemas are compiled to closures: training data has one object per token. */
const READERS = new WeakMap<Node, Reader>();

function readerOf(node: Node): Reader {
  let reader = READERS.get(node);
  if (reader === undefined) {
    reader = compile(node);
    READERS.set(node, reader);
  }
  return reader;
}

function compile(node: Node): Reader {
  if (node.anyOf !== undefined) return unionReader(node, node.anyOf);
  if (node.const !== undefined || node.enum !== undefined) return literalReader(node.enum ?? [node.const]);
  if (node.not !== undefined) return checked(() => false, "value_error", `Value error, ${node.description}`);
  switch (node.type) {
    case undefined:
      return (value) => value;
    case "null":
      return checked((value) => value === null, "none_required", "Input should be null");
    case "string":
      return stringReader(node);
    case "boolean":
      return scalarReader((value, { dialect, fail }) => dialect.scalars.boolean(value, fail));
    case "integer":
      return scalarReader((value, { dialect, fail }) => dialect.scalars.integer(value, node, fail));
    case "number":
      return scalarReader((value, { dialect, fail }) => dialect.scalars.number(value, node, fail));
    case "array":
      return arrayReader(node);
    case "object":
      return node.properties === undefined ? mapReader(node) : objectReader(node, node.properties);
    default:
      throw new Error(`schema type ${node.type} is not understood`);
  }
}

function scalarReader(read: Reader): Reader {
  return (value, reading) => {
    reading.value = value;
    return read(value, reading);
  };
}

function checked(isRight: (value: unknown) => boolean, type: string, msg: string): Reader {
  return scalarReader((value, { fail }) => (isRight(value) ? value : fail(type, msg)));
}

function literalReader(allowed: readonly unknown[]): Reader {
  const words = allowed.map((value) => (typeof value === "string" ? `'${value}'` : String(value)));
  return checked((value) => allowed.includes(value), "literal_error", `Input should be ${words.join(" or ")}`);
}

function stringReader(node: Node): Reader {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, format } = node;
  const maxBytes = node["x-max-bytes"] ?? Number.POSITIVE_INFINITY;
  const pattern = node.pattern === undefined ? null : new RegExp(node.pattern, "u");
  return scalarReader((value, { fail }) => {
    if (typeof value !== "string") return fail("string_type", "Input should be a valid string");
    if (value.length < minLength) return fail("string_too_short", `String should have at least ${minLength} character`);
    if (value.length > maxLength) return fail("string_too_long", `String should have at most ${maxLength} characters`);
    const isLong = Buffer.byteLength(value) > maxBytes;
    if (isLong) return fail("string_too_long", `String should have at most ${maxBytes} bytes`);
    if (pattern !== null && !pattern.test(value)) return fail("value_error", `Value error, use ${node.description}`);
    if (format !== "uuid") return value;
    const id = value.toLowerCase();
    return UUID.test(id) ? id : fail("uuid_parsing", "Input should be a valid UUID");
  });
}

function arrayReader({ items = {}, minItems = 0, maxItems = Number.POSITIVE_INFINITY }: Node): Reader {
  const item = readerOf(items);
  const areIds = items.type === "integer" && items.minimum === undefined && items.format === undefined;
  return (value, reading) => {
    reading.value = value;
    if (!Array.isArray(value)) return reading.fail("list_type", "Input should be a valid list");
    if (value.length < minItems) return reading.fail("too_short", `List should have at least ${minItems} item`);
    if (value.length > maxItems) return reading.fail("too_long", `List should have at most ${maxItems} items`);
    if (areIds && value.every(Number.isSafeInteger)) return value; // the fast path for long lists
    const result: unknown[] = [];
    for (let i = 0; i < value.length && !reading.violations.full; i++) result.push(reading.child(i, item, value[i]));
    return result;
  };
}

function objectReader(node: Node, properties: Record<string, Node>): Reader {
  const fields = Object.entries(properties).map(([key, child]) => {
    return { key, read: readerOf(child), required: node.required?.includes(key) ?? false, nullable: allowsNull(child) };
  });
  return (value, reading) => {
    reading.value = value;
    if (!isJsonObject(value)) return notAnObject(reading);
    const result: Record<string, unknown> = node.additionalProperties === true ? { ...value } : {};
    for (const { key, read, required, nullable } of fields) {
      // an absent field stays absent, because some fields distinguish it from null
      if (reading.isGiven(value, key, nullable)) result[key] = reading.child(key, read, value[key]);
      else {
        if (result[key] === null) delete result[key];
        if (required) reading.violations.add([...reading.path, key], "missing", "Field required");
      }
    }
    return result;
  };
}

/** An object with any keys. Its values are read if there is a schema for them, and kept as they are otherwise. */
function mapReader({ patternProperties, maxProperties, propertyNames }: Node): Reader {
  const most = maxProperties ?? Number.POSITIVE_INFINITY;
  const longest = propertyNames?.maxLength ?? Number.POSITIVE_INFINITY;
  const [values] = Object.values(patternProperties ?? {});
  const read = values && readerOf(values);
  const nullable = values !== undefined && allowsNull(values);
  return (value, reading) => {
    reading.value = value;
    if (!isJsonObject(value)) return notAnObject(reading);
    if (read === undefined && maxProperties === undefined) return value;
    const names = Object.keys(value);
    if (names.length > most) return reading.fail("too_long", `Dictionary should have at most ${most} items`);
    if (names.some((name) => name.length > longest)) {
      return reading.fail("string_too_long", `Names should have at most ${longest} characters`);
    }
    if (read === undefined) return value;
    const entries: [string, unknown][] = [];
    for (const name of names) {
      if (reading.violations.full) break;
      if (reading.isGiven(value, name, nullable)) entries.push([name, reading.child(name, read, value[name])]);
    }
    return Object.fromEntries(entries);
  };
}

function notAnObject({ fail }: Reading): undefined {
  return fail("dict_type", "Input should be a valid dictionary");
}

/** Picks the branch by tag, shape or type; failing that, the first branch without violations. */
function unionReader(node: Node, branches: readonly Node[]): Reader {
  const [first, second] = branches;
  if (branches.length === 2 && second!.type === "null") {
    const read = readerOf(first!);
    return (value, reading) => (value === null ? null : read(value, reading));
  }
  const objects = branches.filter(({ type }) => type === "object");
  return (value, reading) => {
    reading.value = value;
    if (isJsonObject(value)) {
      if (node.discriminator !== undefined) {
        return readerOf(tagged(node.discriminator, branches, value))(value, reading);
      }
      if (objects.length > 1) return readShaped(objects, value, reading);
    }
    const exact = branches.filter(({ type }) => type === jsonType(value));
    return exact.length === 1 ? readerOf(exact[0]!)(value, reading) : readFirstFitting(branches, value, reading);
  };
}

/** The branch that the tag names. The last branch covers all other tags. */
function tagged({ propertyName }: { propertyName: string }, branches: readonly Node[], value: JsonObject): Node {
  const tag = value[propertyName];
  const named = branches.find((branch) => tag !== undefined && branch.properties?.[propertyName]?.const === tag);
  return named ?? branches.at(-1)!;
}

/** Reads by the only branch whose required fields are all present. */
function readShaped(branches: readonly Node[], value: JsonObject, reading: Reading): unknown {
  const fitting = branches.filter((branch) => hasShape(branch, value));
  if (fitting.length === 1) return readerOf(fitting[0]!)(value, reading);
  const shapes = branches.map(({ title, required = [] }) => `a ${title?.toLowerCase()} (${required.join(", ")})`);
  const problem = fitting.length === 0 ? `neither ${shapes.join(" nor ")}` : `both ${shapes.join(" and ")}`;
  return reading.fail("value_error", `Value error, the element is ${problem}`);
}

function hasShape({ properties = {}, required = [] }: Node, value: JsonObject): boolean {
  return required.every((key) => {
    const given = value[key] ?? null;
    return given !== null && (properties[key]!.type !== "object" || isJsonObject(given));
  });
}

/** If no branch fits, reports the violations of the branch with the fewest. */
function readFirstFitting(branches: readonly Node[], value: unknown, reading: Reading): unknown {
  const outer = reading.violations;
  let fewest: Violations | undefined;
  for (const branch of branches) {
    const attempt = new Violations(reading.dialect.maxViolations);
    reading.violations = attempt;
    const result = readerOf(branch)(value, reading);
    reading.violations = outer;
    if (!attempt.any) return result;
    const isFewer = fewest === undefined || attempt.list.length < fewest.list.length;
    if (branch.type !== "null" && isFewer) fewest = attempt;
  }
  outer.take(fewest);
  return undefined;
}

function allowsNull(node: Node): boolean {
  if (node.anyOf !== undefined) return node.anyOf.some(allowsNull);
  const isAnything = [node.type, node.enum, node.const, node.not].every((keyword) => keyword === undefined);
  return node.type === "null" || isAnything;
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
