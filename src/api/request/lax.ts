// Reads a JSON value by a TypeBox schema, as leniently as pydantic does: "0.5" is a number, 5.0 an integer, "yes" a
// boolean; unknown object keys are dropped (and reported), nothing else is guessed. Collects every violation with its
// path and pydantic's word for it, because clients look for those words. Keywords understood: type, const, enum,
// properties, required, items, patternProperties, anyOf (+ discriminator), minimum, maximum, minLength, minItems,
// format int64 (→ bigint). Cross-field rules are not here.

import type { Static, TSchema } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json-object.ts";
import { laxBoolean, laxInteger, laxNumber } from "./lax-scalars.ts";

interface Violation {
  path: readonly (string | number)[];
  /** pydantic's error type, for example `less_than_equal`. */
  kind: string;
  text: string;
}

/** Enough to repair a request by; a list of a million wrong items is not read to its end. */
const MAX_VIOLATIONS = 20;

/** The part of JSON Schema our schemas use. */
interface Node {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  properties?: Record<string, Node>;
  required?: readonly string[];
  items?: Node;
  patternProperties?: Record<string, Node>;
  anyOf?: readonly Node[];
  discriminator?: { propertyName: string };
  minimum?: number;
  maximum?: number;
  minLength?: number;
  minItems?: number;
  format?: string;
}

export interface Read<T> {
  value: T;
  /** Names of unknown keys of the outermost object. */
  ignored: string[];
}

/** The value as the schema has it, or a 400 that lists the violations, up to MAX_VIOLATIONS. */
export function readBody<S extends TSchema>(schema: S, body: unknown): Read<Static<S>> {
  const violations: Violation[] = [];
  const value = read(schema as Node, body, [], violations) as Static<S>;
  if (violations.length > 0) throw invalidBody(violations);
  const known = (schema as Node).properties ?? {};
  const ignored = Object.keys(body as object).filter((key) => !Object.hasOwn(known, key));
  return { value, ignored };
}

function invalidBody(all: readonly Violation[]): ServiceError {
  const violations = all.slice(0, MAX_VIOLATIONS);
  const lines = violations.map((v) => `\n  ${["body", ...v.path].join(".")}: ${v.kind}: ${v.text}`);
  const more = all.length >= MAX_VIOLATIONS ? " or more" : "";
  const count = `${violations.length}${more} validation error${violations.length === 1 ? "" : "s"}:`;
  return new ServiceError("invalid_body", `${count}${lines.join("")}`, {
    param: ["body", ...violations[0]!.path].join("."),
  });
}

type Path = readonly (string | number)[];

function read(node: Node, value: unknown, path: Path, out: Violation[]): unknown {
  const fail = (kind: string, text: string): undefined => {
    out.push({ path, kind, text });
    return undefined;
  };
  if (node.anyOf !== undefined) return readUnion(node, node.anyOf, value, path, out);
  if (node.const !== undefined || node.enum !== undefined) {
    const allowed = node.enum ?? [node.const];
    return allowed.includes(value) ? value : fail("literal_error", `Input should be ${allowed.map(show).join(" or ")}`);
  }
  switch (node.type) {
    case undefined:
      return value;
    case "null":
      return value === null ? null : fail("none_required", "Input should be null");
    case "string":
      if (typeof value !== "string") return fail("string_type", "Input should be a string");
      if (value.length < (node.minLength ?? 0)) {
        return fail("string_too_short", `String should have at least ${node.minLength} character`);
      }
      return value;
    case "boolean":
      return laxBoolean(value, fail);
    case "integer":
      return laxInteger(value, node, fail);
    case "number":
      return laxNumber(value, node, fail);
    case "array":
      return readArray(node, value, path, out);
    case "object":
      return readObject(node, value, path, out);
    default:
      throw new Error(`schema type ${node.type} is not understood`);
  }
}

function readArray(node: Node, value: unknown, path: Path, out: Violation[]): unknown {
  if (!Array.isArray(value)) {
    out.push({ path, kind: "list_type", text: "Input should be an array" });
    return undefined;
  }
  if (value.length < (node.minItems ?? 0)) {
    out.push({ path, kind: "too_short", text: `Array should have at least ${node.minItems} item` });
  }
  const items = node.items ?? {};
  const result: unknown[] = [];
  for (let i = 0; i < value.length && out.length < MAX_VIOLATIONS; i++) {
    result.push(read(items, value[i], [...path, i], out));
  }
  return result;
}

function readObject(node: Node, value: unknown, path: Path, out: Violation[]): unknown {
  if (!isJsonObject(value)) {
    out.push({ path, kind: "dict_type", text: "Input should be an object" });
    return undefined;
  }
  const pattern = node.patternProperties === undefined ? undefined : Object.values(node.patternProperties)[0];
  if (node.properties === undefined) return pattern === undefined ? value : readMap(pattern, value, path, out);
  const result: Record<string, unknown> = {};
  for (const [key, child] of Object.entries(node.properties)) {
    // An absent optional field stays absent: "not given" and "null" differ for some of them.
    if (Object.hasOwn(value, key) && value[key] !== undefined) {
      result[key] = read(child, value[key], [...path, key], out);
    } else if (node.required?.includes(key)) {
      out.push({ path: [...path, key], kind: "missing", text: "Field required" });
    }
  }
  return result;
}

function readMap(node: Node, value: Record<string, unknown>, path: Path, out: Violation[]): unknown {
  const result: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (out.length >= MAX_VIOLATIONS) break;
    result.push([key, read(node, item, [...path, key], out)]);
  }
  return Object.fromEntries(result);
}

/** The branch that fits; with a discriminator the branch it names, the last one being for every other value. */
function readUnion(node: Node, branches: readonly Node[], value: unknown, path: Path, out: Violation[]): unknown {
  if (node.discriminator !== undefined && typeof value === "object" && value !== null) {
    const tag = node.discriminator.propertyName;
    const wanted = (value as Record<string, unknown>)[tag];
    const named = branches.find((b) => b.properties?.[tag]?.const === wanted && wanted !== undefined);
    return read(named ?? branches.at(-1)!, value, path, out);
  }
  const exact = branches.find((branch) => branch.type !== undefined && branch.type === jsonType(value));
  if (exact !== undefined && branches.filter((b) => b.type === exact.type).length === 1) {
    return read(exact, value, path, out);
  }
  let fewest: Violation[] | undefined;
  for (const branch of branches) {
    const attempt: Violation[] = [];
    const result = read(branch, value, path, attempt);
    if (attempt.length === 0) return result;
    if (branch.type !== "null" && (fewest === undefined || attempt.length < fewest.length)) fewest = attempt;
  }
  out.push(...(fewest ?? []));
  return undefined;
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function show(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : String(value);
}
