// Filters over lists as Jinja defines them: the undefined value counts as an empty list, a missing attribute is undefined,
// the first of no elements is undefined, and map can apply another filter to each element.

import { itemOf } from "./attributes.ts";
import { builtins, text, textOr } from "./builtins.ts";
import { compare } from "./comparison.ts";
import { passesTest } from "./is-tests.ts";
import { binary } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import type { Runtime } from "./runtime.ts";
import { join } from "./text-functions.ts";
import { elements, isTrue, type Key, keyOf, Once, pairs, typeName, type Value } from "./values.ts";

export const LIST_FILTERS = builtins<Value>({
  "list()": (value) => [...elements(value)],
  "first()": (value) => elements(value)[0],
  "last()": (value) => elements(value).at(-1),
  "min(case_sensitive, attribute)": (value, [cased, attribute], runtime) =>
    sorted(value, sortKey(attribute, cased, runtime), false)[0],
  "max(case_sensitive, attribute)": (value, [cased, attribute], runtime) =>
    sorted(value, sortKey(attribute, cased, runtime), true)[0],
  "reverse()": (value) =>
    typeof value === "string" ? Array.from(value).reverse().join("") : new Once(elements(value).toReversed()),
  "sort(reverse, case_sensitive, attribute)": (value, [reverse, cased, attribute], runtime) =>
    sorted(value, sortKey(attribute, cased, runtime), isTrue(reverse)),
  "dictsort(case_sensitive, by, reverse)": (value, [cased, by = "key", reverse], runtime) => {
    if (by !== "key" && by !== "value") throw new Error("dictsort sorts by key or by value");
    if (!(value instanceof Map)) throw new Error(`dictsort needs a dict, not '${typeName(value)}'`);
    const key = sortKey(by === "key" ? 0n : 1n, cased, runtime);
    return sorted(pairs(value), key, isTrue(reverse));
  },
  "unique(case_sensitive, attribute)": (value, [cased, attribute], runtime) => {
    const pick = sortKey(attribute, cased, runtime);
    const seen = new Set<Key | undefined>();
    return new Once(
      elements(value).filter((item) => {
        const key = pick(item);
        const known = typeof key === "boolean" ? BigInt(key) : key === undefined ? key : keyOf(key);
        if (seen.has(known)) return false;
        seen.add(known);
        return true;
      }),
    );
  },
  "sum(attribute, start)": (value, [attribute, start = 0n], runtime) => {
    const add = (total: Value, item: Value): Value => {
      const next = attribute === undefined ? item : attributeAt(item, attribute, runtime);
      if (typeof next === "string") throw new Error("sum cannot add strings");
      return binary("+", total, next, runtime.limits);
    };
    return elements(value).reduce(add, start);
  },
  "join(d, attribute)": (value, [separator, attribute], runtime) => {
    const texts = elements(value).map((item) =>
      pythonStr(attribute === undefined || attribute === null ? item : attributeAt(item, attribute, runtime)),
    );
    return join(texts, textOr(separator, ""), runtime.limits.maxText);
  },
  "map(*)": (value, [filter, ...rest], runtime, { named }) => {
    const attribute = named.get("attribute");
    if (filter === undefined && attribute === undefined) {
      throw new Error("map needs an attribute or the name of a filter");
    }
    const pick = (item: Value): Value => attributeAt(item, attribute, runtime) ?? named.get("default");
    const apply = (item: Value): Value => runtime.applyFilter(text(filter), item, { positional: rest, named });
    return new Once(picked(value).map(filter === undefined ? pick : apply));
  },
  "select(*)": (value, args, runtime) => new Once(picked(value).filter((item) => passes(item, args, runtime))),
  "reject(*)": (value, args, runtime) => new Once(picked(value).filter((item) => !passes(item, args, runtime))),
  "selectattr(*)": (value, args, runtime) =>
    new Once(picked(value).filter((item) => hasAttribute(item, args, runtime))),
  "rejectattr(*)": (value, args, runtime) =>
    new Once(picked(value).filter((item) => !hasAttribute(item, args, runtime))),
});

/** Filters that pick elements treat None as an empty list. */
function picked(value: Value): readonly Value[] {
  return value === null ? [] : elements(value);
}

/** "a.b" reaches into nested dicts, "a.0" and 0 into lists; only the last name may be missing. */
function attributeAt(item: Value, path: Value, runtime: Runtime): Value {
  const keys =
    typeof path === "bigint"
      ? [path]
      : text(path)
          .split(".")
          .map((key) => (/^\d+$/.test(key) ? BigInt(key) : key));
  return keys.reduce<Value>((found, key) => {
    if (found === undefined) throw new Error(`'${pythonStr(path)}' reaches into an undefined value`);
    return itemOf(found, key, runtime);
  }, item);
}

function hasAttribute(item: Value, [attribute, ...test]: readonly Value[], runtime: Runtime): boolean {
  if (attribute === undefined) throw new Error("the name of an attribute is needed");
  return passes(attributeAt(item, attribute, runtime), test, runtime);
}

/** By a test's name and what it compares with; without a name, by truth. */
function passes(value: Value, [name, expected]: readonly Value[], runtime: Runtime): boolean {
  return name === undefined ? isTrue(value) : passesTest(text(name), value, expected, runtime);
}

/** The key that elements are sorted and compared by. It ignores case unless `cased`. */
function sortKey(attribute: Value, cased: Value, runtime: Runtime): (item: Value) => Value {
  const fold = (value: Value): Value => (typeof value === "string" && !isTrue(cased) ? value.toLowerCase() : value);
  if (attribute === undefined || attribute === null) return fold;
  const paths = typeof attribute === "string" ? attribute.split(",") : [attribute];
  const pick = (item: Value, path: Value): Value => fold(attributeAt(item, path, runtime));
  return paths.length === 1 ? (item) => pick(item, paths[0]) : (item) => paths.map((path) => pick(item, path));
}

/** Equal elements keep their order, also where the largest come first. */
function sorted(value: Value, pick: (item: Value) => Value, isReversed: boolean): Value[] {
  return elements(value)
    .map((item) => ({ item, key: pick(item) }))
    .sort((a, b) => (isReversed ? compare(b.key, a.key) : compare(a.key, b.key)))
    .map(({ item }) => item);
}
