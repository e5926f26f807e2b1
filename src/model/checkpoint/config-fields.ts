// Typed access to the fields of a checkpoint's JSON files. Errors name the file, the field, what was expected and what
// was found. A field that is absent or null takes the fallback. One of the wrong type is an error, never a silent
// default.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { CheckpointError } from "./checkpoint-file.ts";

/** Larger than any dimension of any model, and small enough that products of two dimensions are exact. */
export const MAX_INTEGER = 2 ** 31 - 1;

/** The smallest float32 that is not subnormal. */
const SMALLEST_FLOAT32 = 2 ** -126;

export class ConfigFields {
  readonly file: string;
  readonly #values: JsonObject;
  readonly #path: string;
  readonly #names: Readonly<Record<string, string>>;

  /**
   * `path` is the prefix of nested objects in error messages, such as "text_config.". `names`: what this file calls some
   * of the keys that callers ask for.
   */
  constructor(file: string, values: JsonObject, path = "", names: Readonly<Record<string, string>> = {}) {
    this.file = file;
    this.#values = values;
    this.#path = path;
    this.#names = names;
  }

  /** The same object with values for absent keys. A key set to null stays null. */
  withDefaults(defaults: JsonObject, names: Readonly<Record<string, string>> = {}): ConfigFields {
    return new ConfigFields(this.file, { ...defaults, ...this.#values }, this.#path, names);
  }

  /** Undefined when absent or null. */
  raw(key: string): unknown {
    const name = this.#names[key] ?? key;
    return Object.hasOwn(this.#values, name) ? (this.#values[name] ?? undefined) : undefined;
  }

  keys(): string[] {
    return Object.keys(this.#values);
  }

  /** A whole number of at least 1. */
  count(key: string, fallback?: number): number {
    return this.#read(key, fallback, "a positive integer", (v) => isInteger(v) && v >= 1);
  }

  /** A number that is positive and finite as float32, in which models are computed. */
  positive(key: string, fallback?: number): number {
    const holds = (v: number) => v >= SMALLEST_FLOAT32 && Number.isFinite(Math.fround(v));
    return this.#read(key, fallback, "a positive number", (v) => isFiniteNumber(v) && holds(v));
  }

  /** A list of whole numbers of at least 0; empty when absent. */
  wholeNumbers(key: string): readonly number[] {
    const valid = (v: unknown) => Array.isArray(v) && v.every((item) => isInteger(item) && item >= 0);
    return this.#read<readonly number[]>(key, [], "a list of whole numbers", valid);
  }

  /** A list of this many numbers, each as for `positive`. */
  positives(key: string, length: number): readonly number[] {
    const holds = (v: unknown) => isFiniteNumber(v) && v >= SMALLEST_FLOAT32 && Number.isFinite(Math.fround(v));
    const valid = (v: unknown) => Array.isArray(v) && v.length === length && v.every(holds);
    return this.#read<readonly number[]>(key, undefined, `a list of ${length} positive numbers`, valid);
  }

  /** A finite number in [min, max]. */
  between(key: string, min: number, max: number, fallback?: number): number {
    return this.#read(key, fallback, `a number in ${min}..${max}`, (v) => isFiniteNumber(v) && v >= min && v <= max);
  }

  flag(key: string, fallback: boolean): boolean {
    return this.#read(key, fallback, "true or false", (v) => typeof v === "boolean");
  }

  text(key: string, fallback?: string): string {
    return this.#read(key, fallback, "a string", (v) => typeof v === "string");
  }

  texts(key: string, fallback?: readonly string[]): readonly string[] {
    const allText = (v: unknown) => Array.isArray(v) && v.every((item) => typeof item === "string");
    return this.#read(key, fallback, "a list of strings", allText);
  }

  /** A nested object, or null when absent. */
  object(key: string): ConfigFields | null {
    const value = this.raw(key);
    if (value === undefined) return null;
    if (!isJsonObject(value)) throw this.problem(key, "an object");
    return new ConfigFields(this.file, value, `${this.#path}${key}.`);
  }

  /** Token ids written as one integer or a list of them; null when absent. */
  tokenIds(key: string): readonly number[] | null {
    const value = this.raw(key);
    if (value === undefined) return null;
    const ids: unknown[] = Array.isArray(value) ? value : [value];
    if (ids.length > 1024 || !ids.every((id) => isInteger(id) && id >= 0)) {
      throw this.problem(key, "a token id or a list of token ids");
    }
    return [...new Set(ids as number[])];
  }

  /** The error for a field with a wrong value. */
  problem(key: string, expected: string): CheckpointError {
    const value = this.raw(key);
    const found = value === undefined ? "it is missing" : `found ${abbreviate(value)}`;
    return new CheckpointError(this.file, `${this.#path}${this.#names[key] ?? key} must be ${expected}, ${found}`);
  }

  #read<T>(key: string, fallback: T | undefined, expected: string, valid: (value: unknown) => boolean): T {
    const value = this.raw(key);
    if (value === undefined && fallback !== undefined) return fallback;
    if (value === undefined || !valid(value)) throw this.problem(key, expected);
    return value as T;
  }
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(value as number) <= MAX_INTEGER;
}

function abbreviate(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
