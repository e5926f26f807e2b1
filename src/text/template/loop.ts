// The variable `loop` of a for loop.

import { int } from "./builtins.ts";
import { equal } from "./comparison.ts";
import { type CallArguments, Instance, type Value } from "./values.ts";

export class Loop extends Instance {
  readonly typeName = "LoopContext";
  readonly #items: readonly Value[];
  readonly #depth: number;
  readonly #recurse: ((items: Value) => Value) | null;
  #changed: readonly Value[] | null = null;
  /** Index of the current element. */
  at = 0;

  /** `depth`: 0 for the outermost of recursive loops. `recurse` runs the loop's body over other elements. */
  constructor(items: readonly Value[], depth: number, recurse: ((items: Value) => Value) | null) {
    super();
    this.#items = items;
    this.#depth = depth;
    this.#recurse = recurse;
  }

  get(name: string): Value {
    const { length } = this.#items;
    switch (name) {
      case "index":
        return int(this.at + 1);
      case "index0":
        return int(this.at);
      case "revindex":
        return int(length - this.at);
      case "revindex0":
        return int(length - this.at - 1);
      case "first":
        return this.at === 0;
      case "last":
        return this.at === length - 1;
      case "length":
        return int(length);
      case "previtem":
        return this.#items[this.at - 1];
      case "nextitem":
        return this.#items[this.at + 1];
      case "depth":
        return int(this.#depth + 1);
      case "depth0":
        return int(this.#depth);
      case "cycle":
        return ({ positional }) => positional[this.at % positional.length];
      case "changed":
        return ({ positional }) => this.#isChanged(positional);
      default:
        return undefined;
    }
  }

  override call({ positional: [items] }: CallArguments): Value {
    if (!this.#recurse) throw new Error("only a loop marked 'recursive' can be called");
    return this.#recurse(items);
  }

  /** Whether it is called with other values than the last time in this loop. */
  #isChanged(values: readonly Value[]): boolean {
    const isChanged = this.#changed === null || !equal(values, this.#changed);
    this.#changed = values;
    return isChanged;
  }
}
