// Turns schemas that only concern members (required, properties and combinations of them) into formulas. These are exact
// and far smaller than a list of alternatives.

import type { SchemaDocument } from "../document.ts";
import { isObject, type JsonValue, type Schema, type SchemaObject } from "../keywords.ts";
import { ALL_TYPES, type TypeName } from "./conjunction.ts";
import { and, atoms, type Formula, has, not, one, or } from "./formula.ts";

/** When a schema holds: a formula decides for objects; values of other types always or never satisfy it. */
export interface Presence {
  readonly object: Formula;
  readonly others: readonly TypeName[];
}

const OTHER_TYPES = ALL_TYPES.filter((type) => type !== "object");
const MAX_DEPTH = 12;

/** null if the schema concerns more than members, or the values of more than `maxValues` members. */
export function presenceOf(document: SchemaDocument, schema: Schema, maxValues: number, path: string): Presence | null {
  const found = translate(document, schema, maxValues, path, 0);
  if (found === null) return null;
  const values = atoms(found.object).filter((atom) => atom.schema !== true);
  return values.length <= maxValues ? found : null;
}

function translate(
  document: SchemaDocument,
  schema: Schema,
  maxValues: number,
  path: string,
  depth: number,
): Presence | null {
  if (typeof schema === "boolean") return { object: schema, others: schema ? OTHER_TYPES : [] };
  if (depth > MAX_DEPTH) return null;
  const inner = (value: JsonValue): Presence | null => translate(document, value as Schema, maxValues, path, depth + 1);
  const several = (values: JsonValue): Presence[] | null => {
    const each = (values as JsonValue[]).map(inner);
    return each.every((one) => one !== null) ? each : null;
  };
  const parts: (Presence | null)[] = [];
  const checked = document.keywords(schema, path);
  if (document.maySkipSiblings(checked)) return null;
  for (const [keyword, value] of Object.entries(checked)) {
    switch (keyword) {
      case "type":
        parts.push(typePresence(value, checked.nullable === true));
        break;
      case "nullable":
      case "then":
      case "else":
        break;
      case "required":
        parts.push(ofObject(and(...(value as string[]).map((name) => has(name)))));
        break;
      case "properties":
        // Other keywords would have to know that this evaluates the member.
        if (document.tracksEvaluation || valuesIn(value) > maxValues) return null;
        parts.push(
          ofObject(and(...Object.entries(value as SchemaObject).map(([name, by]) => whenPresent(name, by as Schema)))),
        );
        break;
      case "$ref":
        parts.push(inner(document.resolve(schema, keyword, path) as JsonValue));
        break;
      case "allOf":
        parts.push(reduced(several(value), allHold));
        break;
      case "anyOf":
        parts.push(reduced(several(value), anyHolds));
        break;
      case "oneOf":
        parts.push(reduced(several(value), oneHolds));
        break;
      case "not":
        parts.push(negated(inner(value)));
        break;
      case "if":
        parts.push(conditional(inner(value), inner(checked.then ?? true), inner(checked.else ?? true)));
        break;
      case "dependentRequired":
      case "dependentSchemas":
      case "dependencies":
        for (const [name, demanded] of Object.entries(value as { [key: string]: JsonValue })) {
          const then = isObject(demanded) || typeof demanded === "boolean" ? inner(demanded) : namesPresent(demanded);
          parts.push(then && ofObject(or(not(has(name)), then.object)));
        }
        break;
      default:
        return null;
    }
    if (parts.includes(null)) return null;
  }
  return allHold(parts as Presence[]);
}

/** If the member is present, its value satisfies the schema. */
function whenPresent(name: string, schema: Schema): Formula {
  return schema === true ? true : or(not(has(name)), has(name, schema));
}

function valuesIn(properties: JsonValue): number {
  return Object.values(properties as SchemaObject).filter((schema) => typeof schema !== "boolean").length;
}

function ofObject(object: Formula): Presence {
  return { object, others: OTHER_TYPES };
}

function namesPresent(names: JsonValue): Presence {
  return ofObject(and(...(names as string[]).map((name) => has(name))));
}

function typePresence(value: JsonValue, nullable: boolean): Presence | null {
  const types = [value, nullable ? "null" : []].flat() as string[];
  // Whether a number is an integer depends on its value.
  if (types.includes("integer") && !types.includes("number")) return null;
  return { object: types.includes("object"), others: OTHER_TYPES.filter((type) => types.includes(type)) };
}

function reduced(parts: Presence[] | null, combine: (parts: Presence[]) => Presence): Presence | null {
  return parts && combine(parts);
}

function allHold(parts: Presence[]): Presence {
  return {
    object: and(...parts.map((part) => part.object)),
    others: OTHER_TYPES.filter((type) => parts.every((part) => part.others.includes(type))),
  };
}

function anyHolds(parts: Presence[]): Presence {
  return {
    object: or(...parts.map((part) => part.object)),
    others: OTHER_TYPES.filter((type) => parts.some((part) => part.others.includes(type))),
  };
}

function oneHolds(parts: Presence[]): Presence {
  return {
    object: one(parts.map((part) => part.object)),
    others: OTHER_TYPES.filter((type) => parts.filter((part) => part.others.includes(type)).length === 1),
  };
}

export function negated<T extends Presence | null>(part: T): T | Presence {
  if (part === null) return part;
  return { object: not(part.object), others: OTHER_TYPES.filter((type) => !part.others.includes(type)) };
}

function conditional(condition: Presence | null, then: Presence | null, otherwise: Presence | null): Presence | null {
  if (condition === null || then === null || otherwise === null) return null;
  return anyHolds([allHold([condition, then]), allHold([negated(condition), otherwise])]);
}
