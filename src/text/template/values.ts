// The values of the template language, as native as they can be:
//
//   Undefined → undefined, None → null, bool → boolean, int → bigint, float → number, str → string, list → array, dict → Map
//
// and a class for each of the rest. Lists and dicts never change: as in Jinja's sandbox, templates only build new ones.
import { EXACT_NUMBER_KEY, isJsonNumber } from "../../json/exact-json.ts";
import { isJsonObject } from "../../json/json.ts";

export type Value =
  | undefined
  | null
  | boolean
  | bigint
  | number
  | string
  | Markup
  | readonly Value[]
  | Tuple
  | Range
  | Once
  | View
  | Dict
  | Instance
  | Callable;

export type Key = null | boolean | bigint | number | string;
export type Dict = ReadonlyMap<Key, Value>;
export type Callable = (args: CallArguments) => Value;

export interface CallArguments {
  positional: readonly Value[];
  named: ReadonlyMap<string, Value>;
}

/** A text from the filters `safe` and `escape`: a text added to it with "+" is escaped. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The value without the mark, which only "+" and a few filters look at. */
export function plain(value: Value): Value {
  return value instanceof Markup ? value.text : value;
}

export class Tuple {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

export class Range {
  readonly start: bigint;
  readonly stop: bigint;
  readonly step: bigint;
  readonly items: readonly bigint[];

  constructor(start: bigint, stop: bigint, step: bigint) {
    if (step === 0n) throw new Error("the step of range() must not be zero");
    const length = (stop - start + step + (step > 0n ? -1n : 1n)) / step;
    if (length > MAX_RANGE) throw new Error(`range() gives at most ${MAX_RANGE} numbers`);
    this.start = start;
    this.stop = stop;
    this.step = step;
    this.items = Array.from({ length: Math.max(0, Number(length)) }, (_, i) => start + BigInt(i) * step);
  }
}

const MAX_RANGE = 100_000n;

/** A generator, as map, select and reverse return. It is truthy, has no length, and is empty after one iteration. */
export class Once {
  #items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.#items = items;
  }

  take(): readonly Value[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }
}

/** The keys, values or items of a dict. */
export class View {
  readonly name: ViewName;
  readonly items: readonly Value[];

  constructor(name: ViewName, items: readonly Value[]) {
    this.name = name;
    this.items = items;
  }
}

type ViewName = "dict_keys" | "dict_values" | "dict_items";

/** Arguments of a tool call: a dict that can be added to a text, as its JSON, for templates that expect JSON text there. */
export class ToolArguments extends Map<Key, Value> {}

/** Marks, among plain JSON, the arguments of a tool call. */
export class ArgumentsJson {
  readonly json: unknown;

  constructor(json: unknown) {
    this.json = json;
  }
}

/** A value known by its attributes: the loop variable or a namespace. */
export abstract class Instance {
  abstract readonly typeName: string;
  abstract get(name: string): Value;

  /** Runs `instance(...)`. */
  call(_args: CallArguments): Value {
    throw new Error(`'${this.typeName}' object is not callable`);
  }
}

export class Namespace extends Instance {
  readonly typeName = "Namespace";
  readonly attributes: Map<string, Value>;

  constructor(attributes: Map<string, Value>) {
    super();
    this.attributes = attributes;
  }

  get(name: string): Value {
    return this.attributes.get(name);
  }
}

/** Python's name for the type of a value. */
export function typeName(value: Value): string {
  if (value === undefined) return "Undefined";
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  if (value instanceof Map) return "dict";
  if (value instanceof Instance) return value.typeName;
  if (value instanceof View) return value.name;
  if (value instanceof Once) return "generator";
  if (typeof value === "object") return value.constructor.name.toLowerCase();
  return { boolean: "bool", bigint: "int", number: "float", string: "str", function: "function" }[
    typeof value as "string"
  ];
}

export function isTrue(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  if (value instanceof Markup) return value.text !== "";
  if (value instanceof Tuple || value instanceof Range || value instanceof View) return value.items.length > 0;
  return Boolean(value);
}

/** The elements of anything that can be looped over; null for what cannot. The undefined value has none. */
export function elementsOrNull(value: Value): readonly Value[] | null {
  if (value === undefined) return [];
  if (typeof value === "string") return Array.from(value);
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value.keys()];
  if (value instanceof Tuple || value instanceof Range || value instanceof View) return value.items;
  return value instanceof Once ? value.take() : null;
}

export function elements(value: Value): readonly Value[] {
  const items = elementsOrNull(value);
  if (items === null) throw new Error(`'${typeName(value)}' object is not iterable`);
  return items;
}

/** Elements of a list, a tuple or a range, which have positions; null for everything else. */
export function positioned(value: Value): readonly Value[] | null {
  if (value instanceof Tuple || value instanceof Range) return value.items;
  return Array.isArray(value) ? value : null;
}

/** Characters, not UTF-16 units. */
export function characters(text: string): ArrayLike<string> & { slice(from: number, to: number): string | string[] } {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
}

export function lengthOf(value: Value): number {
  if (typeof value === "string") return characters(value).length;
  if (value === undefined) return 0;
  if (value instanceof Map) return value.size;
  const items = value instanceof View ? value.items : positioned(value);
  if (items === null) throw new Error(`object of type '${typeName(value)}' has no len()`);
  return items.length;
}

/** A value as the key of a dict. */
export function keyOf(value: Value): Key {
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "bigint" || typeof value === "number") return value;
  throw new Error(`a key cannot be a '${typeName(value)}'`);
}

/** The key under which a dict holds a value, if it does: as in Python, True and 1 are one key. */
export function findKey(dict: Dict, value: Value): Key {
  const key = keyOf(value);
  if (dict.has(key)) return key;
  const twin = typeof key === "boolean" ? BigInt(key) : key === 1n ? true : key === 0n ? false : key;
  return dict.has(twin) ? twin : key;
}

/** The entries of a dict as (key, value). */
export function pairs(dict: Dict): Tuple[] {
  return Array.from(dict, (pair) => new Tuple(pair));
}

const MAX_VALUES = 250_000;
const MAX_DEPTH = 400;
/** As in Python. */
const MAX_DIGITS = 4_300;

/** Plain JSON → values, bounded in number and depth. `budget.left`: values that may still be made. */
export function fromJson(json: unknown, budget = { left: MAX_VALUES }, depth = 0): Value {
  if (json === undefined || json === null || typeof json === "boolean" || typeof json === "string") return json;
  if (typeof json === "number") return Number.isSafeInteger(json) && !Object.is(json, -0) ? BigInt(json) : json;
  if (json instanceof ArgumentsJson) {
    const value = fromJson(json.json, budget, depth);
    return value instanceof Map ? new ToolArguments(value) : value;
  }
  if (depth > MAX_DEPTH) throw new Error(`its variables are nested more than ${MAX_DEPTH} deep`);
  const isList = Array.isArray(json);
  if (!isList && !isJsonObject(json)) throw new Error("a variable is not JSON");
  const inner: unknown[] = isList ? json : Object.values(json);
  budget.left -= inner.length;
  if (budget.left < 0) throw new Error(`it would be given more than ${MAX_VALUES} values`);
  const values = inner.map((item) => fromJson(item, budget, depth + 1));
  if (isList) return values;
  const keys = Object.keys(json);
  const written = inner[0];
  if (keys.length === 1 && keys[0] === EXACT_NUMBER_KEY && isJsonNumber(written)) return exactNumber(written);
  return new Map(keys.map((key, i) => [key, values[i]]));
}

function exactNumber(written: string): bigint | number {
  if (/[.eE]/.test(written)) return Number(written);
  if (written.length > MAX_DIGITS) throw new Error(`a number has more than ${MAX_DIGITS} digits`);
  return BigInt(written);
}

// Variables by name. A loop, a macro and `with` have a scope of their own; what is set in it ends with it.
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

// What built-in filters, tests and methods know of the evaluator that runs them.

export interface Limits {
  /** Nodes evaluated. */
  maxSteps: number;
  /** Characters of any one text, the result included. */
  maxText: number;
  /** Elements of any one list. */
  maxItems: number;
  /** Characters put together by all blocks. */
  maxTotalText: number;
}

export interface Runtime {
  readonly limits: Limits;
  applyFilter(name: string, operand: Value, args: CallArguments): Value;
}
