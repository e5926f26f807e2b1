// Typed access to the metadata of a GGUF file. Errors name the file, the key, what was expected and what was found.

import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import { GgufList, type GgufValue } from "./gguf-values.ts";

export class GgufMetadata {
  readonly path: string;
  readonly #values: ReadonlyMap<string, GgufValue>;

  constructor(path: string, values: ReadonlyMap<string, GgufValue>) {
    this.path = path;
    this.#values = values;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  keys(): string[] {
    return [...this.#values.keys()];
  }

  text(key: string, fallback?: string): string {
    return this.#read(key, fallback, "a text", (value) => (typeof value === "string" ? value : null));
  }

  flag(key: string, fallback: boolean): boolean {
    return this.#read(key, fallback, "true or false", (value) => (typeof value === "boolean" ? value : null));
  }

  number(key: string, fallback?: number): number {
    return this.#read(key, fallback, "a finite number", (value) => (Number.isFinite(value) ? (value as number) : null));
  }

  /** A whole number of at least 1. Some files repeat it for every layer; then all must be the same. */
  count(key: string, fallback?: number): number {
    return this.#read(key, fallback, "one positive integer", (value) => {
      const all = value instanceof GgufList ? (value.numbers() ?? []) : [value];
      const [first] = all;
      const isCount = Number.isSafeInteger(first) && (first as number) >= 1;
      return isCount && all.every((one) => one === first) ? (first as number) : null;
    });
  }

  texts(key: string): string[] {
    return this.#read(key, undefined, "a list of texts", (value) => (value instanceof GgufList ? value.texts() : null));
  }

  numbers(key: string): number[] {
    const numbers = (value: GgufValue) => (value instanceof GgufList ? value.numbers() : null);
    return this.#read(key, undefined, "a list of numbers", numbers);
  }

  #read<T>(key: string, fallback: T | undefined, expected: string, read: (value: GgufValue) => T | null): T {
    const value = this.#values.get(key);
    if (value === undefined) {
      if (fallback !== undefined) return fallback;
      throw new CheckpointError(this.path, `its metadata has no ${key} (expected ${expected})`);
    }
    const result = read(value);
    if (result !== null) return result;
    const found = value instanceof GgufList ? `a list of ${value.length}` : JSON.stringify(value).slice(0, 80);
    throw new CheckpointError(this.path, `${key} in its metadata must be ${expected}, found ${found}`);
  }
}
