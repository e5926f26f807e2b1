// Attributes, items and slices of values. A template reaches the methods listed here and what it was given, nothing else.
// `.name` looks for a method first and `["name"]` for a key first, as in Jinja: schemas of arrays have a key `items`.

import { type Builtin, builtins, int, integer, integerOr } from "./builtins.ts";
import { equal } from "./comparison.ts";
import type { Runtime } from "./runtime.ts";
import { STRING_METHODS } from "./string-methods.ts";
import {
  characters,
  type Dict,
  findKey,
  Instance,
  pairs,
  positioned,
  Tuple,
  typeName,
  type Value,
  View,
} from "./values.ts";

const DICT_METHODS = builtins<Dict>({
  "get(key, default)": (dict, [key, fallback = null]) =>
    key !== undefined && dict.has(findKey(dict, key)) ? dict.get(findKey(dict, key)) : fallback,
  "items()": (dict) => new View("dict_items", pairs(dict)),
  "keys()": (dict) => new View("dict_keys", [...dict.keys()]),
  "values()": (dict) => new View("dict_values", [...dict.values()]),
  "copy()": (dict) => new Map(dict),
});

/** Methods of Python's dict that would change it. Jinja's sandbox refuses them, whether or not there is such a key. */
const REFUSED_OF_DICT = new Set(["clear", "pop", "popitem", "setdefault", "update", "fromkeys"]);

const LIST_METHODS = builtins<readonly Value[]>({
  "index(value)": (items, [value]) => {
    const at = items.findIndex((item) => equal(item, value));
    if (at < 0) throw new Error("the value is not in the list");
    return int(at);
  },
  "count(value)": (items, [value]) => int(items.filter((item) => equal(item, value)).length),
  "copy()": (items) => items,
});

export function attributeOf(object: Value, name: string, runtime: Runtime): Value {
  if (object instanceof Map) {
    if (REFUSED_OF_DICT.has(name)) return undefined;
    return method(DICT_METHODS, object, name, runtime) ?? object.get(name);
  }
  if (object instanceof Instance) return object.get(name);
  if (typeof object === "string") return method(STRING_METHODS, object, name, runtime);
  const items = positioned(object);
  return items === null ? undefined : method(LIST_METHODS, items, name, runtime);
}

export function itemOf(object: Value, index: Value, runtime: Runtime): Value {
  if (object instanceof Map && index !== undefined) {
    const item = object.get(findKey(object, index));
    if (item !== undefined) return item;
  }
  if (typeof index === "string") return attributeOf(object, index, runtime);
  if (typeof index !== "bigint" && typeof index !== "boolean") return undefined;
  const items = typeof object === "string" ? characters(object) : positioned(object);
  if (items === null) return undefined;
  const at = Number(index);
  return items[at < 0 ? at + items.length : at];
}

/** A part of a text, list, tuple or range. */
export function sliceOf(object: Value, [start, stop, step]: readonly [Value, Value, Value]): Value {
  const items = typeof object === "string" ? Array.from(object) : positioned(object);
  const stride = integerOr(step, 1);
  if (items === null) throw new Error(`'${typeName(object)}' object has no slices`);
  if (stride === 0) throw new Error("the step of a slice must not be zero");
  const { length } = items;
  const [low, high] = stride > 0 ? [0, length] : [-1, length - 1];
  const clamp = (bound: number): number => Math.min(Math.max(bound < 0 ? bound + length : bound, low), high);
  const from = clamp(integerOr(start, stride > 0 ? 0 : length));
  const to = stop === undefined || stop === null ? (stride > 0 ? high : low) : clamp(integer(stop));
  const kept: Value[] = [];
  for (let at = from; stride > 0 ? at < to : at > to; at += stride) kept.push(items[at]);
  if (typeof object === "string") return kept.join("");
  return object instanceof Tuple ? new Tuple(kept) : kept;
}

function method<Subject>(
  methods: ReadonlyMap<string, Builtin<Subject>>,
  subject: Subject,
  name: string,
  runtime: Runtime,
): Value {
  const run = methods.get(name);
  return run && ((call) => run(subject, call, runtime));
}
