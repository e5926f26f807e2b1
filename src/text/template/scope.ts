// Variables by name. A loop, a macro and `with` have a scope of their own; what is set in it ends with it.

import type { Value } from "./values.ts";

export class Scope {
  readonly #parent: Scope | null;
  readonly #variables: Map<string, Value>;

  constructor(parent: Scope | null, variables: Iterable<readonly [string, Value]> = []) {
    this.#parent = parent;
    this.#variables = new Map(variables);
  }

  get(name: string): Value {
    const value = this.#variables.get(name);
    if (value !== undefined || this.#parent === null || this.#variables.has(name)) return value;
    return this.#parent.get(name);
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value);
  }
}
