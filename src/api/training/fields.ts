// Reading one JSON object field by field, with every problem noted under its path. null means "not given" everywhere.
// Unknown fields are ignored.

import { Type } from "typebox";
import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { ChatTool } from "../../text/messages.ts";
import { Tool } from "../request/message.schema.ts";
import { chatTools } from "../request/messages.ts";
import { readValue } from "../request/reader.ts";
import { type Issues, type Loc, TRAINING } from "./issues.ts";

const Tools = Type.Array(Tool);

/** For numbers that are averaged: up to this, sums of them and of their squares are finite. */
export const AVERAGEABLE = { min: -1e100, max: 1e100 };

/** Of metrics: of one trajectory or group, and of all that one request logs. Every one is kept with a step. */
export const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 256;

export class Fields {
  readonly #object: JsonObject;
  readonly #loc: Loc;
  readonly #issues: Issues;

  constructor(object: JsonObject, loc: Loc, issues: Issues) {
    this.#object = object;
    this.#loc = loc;
    this.#issues = issues;
  }

  at(key: string): Loc {
    return [...this.#loc, key];
  }

  /** undefined for absent and null. */
  raw(key: string): unknown {
    return Object.hasOwn(this.#object, key) ? (this.#object[key] ?? undefined) : undefined;
  }

  problem(key: string, type: string, msg: string): null {
    this.#issues.add(this.at(key), type, msg, this.raw(key));
    return null;
  }

  missing(key: string): null {
    this.#issues.add(this.at(key), "missing", "Field required");
    return null;
  }

  text(key: string): string | null {
    const value = this.raw(key);
    if (value === undefined || typeof value === "string") return value ?? null;
    return this.problem(key, "string_type", "Input should be a valid string");
  }

  /** A UUID, in the case that ids are kept in. */
  id(key: string): string | null {
    return this.text(key)?.toLowerCase() ?? null;
  }

  /** Finite; true and false count as 1 and 0, as in the clients' own models. */
  number(key: string, range: { min?: number; max?: number; above?: number } = {}): number | null {
    const value = this.raw(key);
    if (value === undefined) return null;
    const number = typeof value === "boolean" ? Number(value) : value;
    if (typeof number !== "number") return this.problem(key, "float_type", "Input should be a valid number");
    if (!Number.isFinite(number)) return this.problem(key, "finite_number", "Input should be a finite number");
    if (range.min !== undefined && number < range.min) {
      return this.problem(key, "greater_than_equal", `Input should be greater than or equal to ${range.min}`);
    }
    if (range.above !== undefined && number <= range.above) {
      return this.problem(key, "greater_than", `Input should be greater than ${range.above}`);
    }
    if (range.max !== undefined && number > range.max) {
      return this.problem(key, "less_than_equal", `Input should be less than or equal to ${range.max}`);
    }
    return number;
  }

  integer(key: string, range: { min?: number; max?: number } = {}): number | null {
    const value = this.raw(key);
    if (value !== undefined && !Number.isSafeInteger(value)) {
      return this.problem(key, "int_type", "Input should be a valid integer");
    }
    return this.number(key, range);
  }

  flag(key: string): boolean | null {
    const value = this.raw(key);
    if (value === undefined || typeof value === "boolean") return value ?? null;
    return this.problem(key, "bool_type", "Input should be a valid boolean");
  }

  oneOf<Choice extends string>(key: string, choices: readonly Choice[]): Choice | null {
    const value = this.raw(key);
    if (value === undefined) return null;
    if (choices.includes(value as Choice)) return value as Choice;
    const names = choices.map((choice) => `'${choice}'`).join(" or ");
    return this.problem(key, "literal_error", `Input should be ${names}`);
  }

  array(key: string): readonly unknown[] | null {
    const value = this.raw(key);
    if (value === undefined || Array.isArray(value)) return value ?? null;
    return this.problem(key, "list_type", "Input should be a valid list");
  }

  object(key: string): JsonObject | null {
    const value = this.raw(key);
    if (value === undefined || isJsonObject(value)) return value ?? null;
    return this.problem(key, "dict_type", "Input should be a valid dictionary");
  }

  /** Objects of a list; others are noted and left out. */
  objects(key: string): { object: JsonObject; loc: Loc; index: number }[] {
    return (this.array(key) ?? []).flatMap((object, index) => {
      const loc = [...this.at(key), index];
      if (isJsonObject(object)) return [{ object, loc, index }];
      this.#issues.add(loc, "dict_type", "Input should be a valid dictionary", object);
      return [];
    });
  }

  /** null without any. */
  tools(key: string): ChatTool[] | null {
    const value = this.raw(key);
    return value === undefined ? null : chatTools(readValue(Tools, value, TRAINING, this.#issues, this.at(key)));
  }

  integers(key: string): number[] | null {
    const values = this.array(key);
    if (!values) return null;
    const bad = values.findIndex((value) => !Number.isSafeInteger(value));
    if (bad < 0) return values as number[];
    this.#issues.add([...this.at(key), bad], "int_type", "Input should be a valid integer", values[bad]);
    return null;
  }

  /** Numbers by name; booleans count as 0 and 1. */
  metrics(key: string): Record<string, number> {
    const result: Record<string, number> = {};
    const object = this.object(key) ?? {};
    const fields = new Fields(object, this.at(key), this.#issues);
    const names = Object.keys(object);
    if (names.length > MAX_NAMES) {
      this.#issues.add(this.at(key), "too_long", `Dictionary should have at most ${MAX_NAMES} items`);
      return result;
    }
    if (names.some((name) => name.length > MAX_NAME_LENGTH)) {
      this.#issues.add(this.at(key), "string_too_long", `Names should have at most ${MAX_NAME_LENGTH} characters`);
      return result;
    }
    for (const name of names) {
      const value = fields.number(name, AVERAGEABLE);
      if (value !== null) Object.defineProperty(result, name, { value, enumerable: true, writable: true });
    }
    return result;
  }
}
