// Filters over lists as Jinja defines them: nothing at all counts as an empty list, a missing attribute is undefined,
// the first of no elements is undefined, and map can apply another filter to each element.

import { argument, textOrNull } from "./arguments.ts";
import { pairsOf } from "./filters.ts";
import { passesTest } from "./is-tests.ts";
import type { TemplateValue } from "./library.ts";
import { applyOperator, compare, equal } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import { join } from "./text-functions.ts";
import { booleanOf, type CallArguments, integerOf, keyValue, listOf, nothing, textOf, tupleOf } from "./values.ts";

export interface ListFilterTools {
  maxText: number;
  /** Applies a filter by name. */
  apply(name: string, operand: TemplateValue, args: CallArguments): TemplateValue;
}

type ListFilter = (items: TemplateValue[], args: CallArguments, tools: ListFilterTools) => TemplateValue;

/** Elements that batch and slice add at most. */
const MAX_FILLED = 10_000;

const listFilters: Readonly<Record<string, ListFilter>> = {
  list: (items) => listOf(items),
  dictsort: (pairs, args) => {
    const by = textOrNull(argument(args, 1, "by")) ?? "key";
    if (by !== "key" && by !== "value") throw new Error("dictsort sorts by key or by value");
    const sign = argument(args, 2, "reverse")?.__bool__().value ? -1 : 1;
    const key = sortKey(integerOf(by === "key" ? 0 : 1), argument(args, 0, "case_sensitive"));
    return listOf(sorted(withKeys(pairs, key), sign).map(({ item }) => item));
  },
  first: (items) => items[0] ?? nothing,
  last: (items) => items.at(-1) ?? nothing,
  min: (items, args) => extreme(items, args, (order) => order < 0),
  max: (items, args) => extreme(items, args, (order) => order > 0),
  reverse: (items) => listOf(items.toReversed()),
  sort(items, args) {
    const sign = argument(args, 0, "reverse")?.__bool__().value ? -1 : 1;
    const keyed = withKeys(items, sortKey(argument(args, 2, "attribute"), argument(args, 1, "case_sensitive")));
    return listOf(sorted(keyed, sign).map(({ item }) => item));
  },
  unique(items, args) {
    const keyed = withKeys(items, sortKey(argument(args, 1, "attribute"), argument(args, 0, "case_sensitive")));
    const seen = new Set<unknown>();
    return listOf(
      keyed.flatMap(({ item, key }) => {
        if (seen.has(hashOf(key))) return [];
        seen.add(hashOf(key));
        return [item];
      }),
    );
  },
  sum(items, args) {
    const attribute = argument(args, 0, "attribute");
    const numbers = items.map((item) => (attribute ? attributeOf(item, pathOf(attribute)) : item));
    const add = (total: TemplateValue, next: TemplateValue): TemplateValue => {
      const value =
        typeof next.value === "string" ? null : applyOperator("+", total, next, { maxText: 0, maxItems: 0 });
      if (value === null) throw new Error("sum adds numbers");
      return value;
    };
    return numbers.reduce(add, argument(args, 1, "start") ?? integerOf(0));
  },
  batch(items, args) {
    const count = positiveCount(argument(args, 0, "linecount"));
    const fill = argument(args, 1, "fill_with");
    const rows = Array.from({ length: Math.ceil(items.length / count) }, (_, i) =>
      items.slice(i * count, (i + 1) * count),
    );
    const last = rows.at(-1);
    // Filling up at most doubles what is there, unless a row is longer than the list.
    if (last && fill && fill.type !== "NullValue") {
      if (count > MAX_FILLED) throw new Error(`batch fills up at most ${MAX_FILLED} elements`);
      while (last.length < count) last.push(fill);
    }
    return listOf(rows.map(listOf));
  },
  slice(items, args) {
    const count = positiveCount(argument(args, 0, "slices"));
    if (count > MAX_FILLED) throw new Error(`slice makes at most ${MAX_FILLED} lists`);
    const fill = argument(args, 1, "fill_with");
    const [size, longer] = [Math.floor(items.length / count), items.length % count];
    const columns = Array.from({ length: count }, (_, i) => {
      const from = i * size + Math.min(i, longer);
      const column = items.slice(from, from + size + (i < longer ? 1 : 0));
      return fill && fill.type !== "NullValue" && i >= longer ? [...column, fill] : column;
    });
    return listOf(columns.map(listOf));
  },
  groupby(items, args) {
    const attribute = argument(args, 0, "attribute");
    const fallback = argument(args, 1, "default");
    if (attribute === undefined) throw new Error("groupby needs an attribute");
    const folded = sortKey(attribute, argument(args, 2, "case_sensitive"), fallback);
    const plain = sortKey(attribute, booleanOf(true), fallback);
    const groups: { key: TemplateValue; items: TemplateValue[] }[] = [];
    for (const { item, key } of sorted(withKeys(items, folded), 1)) {
      const last = groups.at(-1);
      if (last && equal(last.key, key)) last.items.push(item);
      else groups.push({ key, items: [item] });
    }
    return listOf(groups.map((group) => groupOf(plain(group.items[0]!), listOf(group.items))));
  },
  join(items, { positional, named }, { maxText }) {
    const separator = textOrNull(positional[0] ?? named.get("d")) ?? "";
    const attribute = positional[1] ?? named.get("attribute");
    const texts = items.map((item) => pythonStr(attribute ? attributeOf(item, pathOf(attribute)) : item));
    return textOf(join(texts, separator, maxText));
  },
  map(items, { positional, named }, { apply }) {
    const attribute = named.get("attribute");
    if (attribute) {
      const fallback = named.get("default") ?? nothing;
      const values = items.map((item) => attributeOf(item, pathOf(attribute)));
      return listOf(values.map((value) => (value === nothing ? fallback : value)));
    }
    const filter = textOrNull(positional[0]);
    if (filter === null) throw new Error("map needs an attribute or the name of a filter");
    return listOf(items.map((item) => apply(filter, item, { positional: positional.slice(1), named })));
  },
  selectattr: (items, args) => listOf(items.filter((item) => hasAttribute(item, args))),
  rejectattr: (items, args) => listOf(items.filter((item) => !hasAttribute(item, args))),
  select: (items, { positional }) => listOf(items.filter((item) => passes(item, positional))),
  reject: (items, { positional }) => listOf(items.filter((item) => !passes(item, positional))),
};

const PICKING = new Set(["map", "select", "selectattr", "reject", "rejectattr"]);

export function listFilter(name: string): ListFilter | null {
  return Object.hasOwn(listFilters, name) ? listFilters[name]! : null;
}

/** What a list filter works on: those that pick elements take none for an empty list. */
export function filterElements(name: string, operand: TemplateValue): TemplateValue[] {
  if (name === "dictsort") return pairsOf(operand);
  return PICKING.has(name) && operand.type === "NullValue" ? [] : elementsOf(operand);
}

/** The elements of anything that can be looped over; the undefined value has none. */
export function elementsOf(operand: TemplateValue): TemplateValue[] {
  const { value } = operand;
  if (Array.isArray(value)) return value;
  if (typeof value === "string") return Array.from(value, textOf);
  if (value instanceof Map) return Array.from(value.keys(), keyValue);
  if (operand.type === "UndefinedValue") return [];
  throw new Error(`a ${operand.type} has no elements`);
}

/** "a.b" reaches into nested objects, "a.0" and 0 into lists; only the last name may be missing. */
function attributeOf(item: TemplateValue, path: string): TemplateValue {
  let found = item;
  for (const key of path.split(".")) {
    if (found === nothing) throw new Error(`'${path}' reaches into something undefined`);
    const { value } = found;
    if (value instanceof Map) found = value.get(key) ?? nothing;
    else found = (Array.isArray(value) && /^\d+$/.test(key) && value[Number(key)]) || nothing;
  }
  return found;
}

function pathOf({ type, value }: TemplateValue): string {
  if (type !== "StringValue" && type !== "IntegerValue") throw new Error("an attribute is a string or a number");
  return String(value);
}

function hasAttribute(item: TemplateValue, { positional }: CallArguments): boolean {
  if (positional[0] === undefined) throw new Error("the name of an attribute is needed");
  return passes(attributeOf(item, pathOf(positional[0])), positional.slice(1));
}

/** By a test's name and what it compares with; without a name, by truth. */
function passes(value: TemplateValue, [name, expected]: readonly TemplateValue[]): boolean {
  const testName = textOrNull(name);
  return testName === null ? value.__bool__().value : passesTest(testName, value, expected);
}

type SortKey = (item: TemplateValue) => TemplateValue;

interface Keyed {
  item: TemplateValue;
  key: TemplateValue;
}

/** What elements are ordered and told apart by: letters in any case are alike unless asked for. */
function sortKey(
  attribute: TemplateValue | undefined,
  caseSensitive: TemplateValue | undefined,
  fallback: TemplateValue = nothing,
): SortKey {
  const fold = !caseSensitive?.__bool__().value;
  const paths = attribute && attribute.type !== "NullValue" ? pathOf(attribute).split(",") : [];
  const folded = (value: TemplateValue): TemplateValue =>
    fold && value.type === "StringValue" ? textOf((value.value as string).toLowerCase()) : value;
  const pick = (item: TemplateValue, path: string): TemplateValue => {
    const value = attributeOf(item, path);
    return folded(value === nothing ? fallback : value);
  };
  if (paths.length === 0) return folded;
  return paths.length === 1 ? (item) => pick(item, paths[0]!) : (item) => listOf(paths.map((path) => pick(item, path)));
}

function withKeys(items: readonly TemplateValue[], keyOf: SortKey): Keyed[] {
  return items.map((item) => ({ item, key: keyOf(item) }));
}

/** Equal elements keep their order, also where the largest come first (`sign` -1). */
function sorted(keyed: readonly Keyed[], sign: 1 | -1): Keyed[] {
  return keyed.toSorted((a, b) => sign * compare(a.key, b.key));
}

/** The same for equal values, different for others; as in Python, lists and objects have none. */
function hashOf({ type, value }: TemplateValue): unknown {
  if (typeof value === "object" && value !== null) throw new Error(`a ${type} cannot be told apart from others`);
  return typeof value === "boolean" ? Number(value) : value;
}

function groupOf(grouper: TemplateValue, list: TemplateValue): TemplateValue {
  const group = tupleOf([grouper, list]);
  const names = group.builtins as Map<string, TemplateValue>;
  names.set("grouper", grouper);
  names.set("list", list);
  return group;
}

function extreme(items: TemplateValue[], args: CallArguments, isBetter: (order: number) => boolean): TemplateValue {
  const keyed = withKeys(items, sortKey(argument(args, 1, "attribute"), argument(args, 0, "case_sensitive")));
  let best = keyed[0];
  for (const candidate of keyed.slice(1)) if (isBetter(compare(candidate.key, best!.key))) best = candidate;
  return best?.item ?? nothing;
}

function positiveCount(value: TemplateValue | undefined): number {
  if (value?.type !== "IntegerValue" || (value.value as number) < 1) throw new Error("a number of 1 or more is needed");
  return value.value as number;
}
