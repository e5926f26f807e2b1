// Filters over lists as Jinja defines them: nothing at all counts as an empty list, a missing attribute is undefined,
// the first of no elements is undefined, and map can apply another filter to each element.

import type { CallArguments } from "./filters.ts";
import type { TemplateEnvironment, TemplateValue } from "./library.ts";
import { contains, equal } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import { join } from "./text-functions.ts";
import { keyValue, listOf, nothing, textOf } from "./values.ts";

export interface ListFilterTools {
  environment: TemplateEnvironment;
  maxText: number;
  /** Applies a filter by name. */
  apply(name: string, operand: TemplateValue, args: CallArguments): TemplateValue;
}

type ListFilter = (items: TemplateValue[], args: CallArguments, tools: ListFilterTools) => TemplateValue;

const listFilters: Readonly<Record<string, ListFilter>> = {
  list: (items) => listOf(items),
  first: (items) => items[0] ?? nothing,
  last: (items) => items.at(-1) ?? nothing,
  min: (items) => extreme(items, (a, b) => a < b),
  max: (items) => extreme(items, (a, b) => a > b),
  join(items, { positional, named }, { maxText }) {
    const separator = textOrNull(positional[0] ?? named.get("d")) ?? "";
    const attribute = textOrNull(positional[1] ?? named.get("attribute"));
    const texts = items.map((item) => pythonStr(attribute === null ? item : attributeOf(item, attribute)));
    return textOf(join(texts, separator, maxText));
  },
  map(items, { positional, named }, { apply }) {
    const attribute = textOrNull(named.get("attribute"));
    if (attribute !== null) {
      const fallback = named.get("default") ?? nothing;
      const values = items.map((item) => attributeOf(item, attribute));
      return listOf(values.map((value) => (value === nothing ? fallback : value)));
    }
    const filter = textOrNull(positional[0]);
    if (filter === null) throw new Error("map needs an attribute or the name of a filter");
    return listOf(items.map((item) => apply(filter, item, { positional: positional.slice(1), named })));
  },
  selectattr: (items, args, tools) => listOf(items.filter((item) => hasAttribute(item, args, tools))),
  rejectattr: (items, args, tools) => listOf(items.filter((item) => !hasAttribute(item, args, tools))),
  select: (items, { positional }, tools) => listOf(items.filter((item) => passes(item, positional, tools))),
  reject: (items, { positional }, tools) => listOf(items.filter((item) => !passes(item, positional, tools))),
};

const picking = new Set(["map", "select", "selectattr", "reject", "rejectattr"]);

export function listFilter(name: string): ListFilter | null {
  return Object.hasOwn(listFilters, name) ? listFilters[name]! : null;
}

/** What a list filter works on: those that pick elements take none for an empty list. */
export function filterElements(name: string, operand: TemplateValue): TemplateValue[] {
  return picking.has(name) && operand.type === "NullValue" ? [] : elementsOf(operand);
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

/** "a.b" reaches into nested objects; only the last name may be missing. */
function attributeOf(item: TemplateValue, path: string): TemplateValue {
  let found = item;
  for (const key of path.split(".")) {
    if (found === nothing) throw new Error(`'${path}' reaches into something undefined`);
    found = (found.value instanceof Map && found.value.get(key)) || nothing;
  }
  return found;
}

function hasAttribute(item: TemplateValue, { positional }: CallArguments, tools: ListFilterTools): boolean {
  const attribute = textOrNull(positional[0]);
  if (attribute === null) throw new Error("the name of an attribute is needed");
  return passes(attributeOf(item, attribute), positional.slice(1), tools);
}

/** By a test's name and what it compares with; without a name, by truth. */
function passes(
  value: TemplateValue,
  [name, expected]: readonly TemplateValue[],
  { environment }: ListFilterTools,
): boolean {
  const testName = textOrNull(name);
  if (testName === null) return value.__bool__().value;
  if (["eq", "equalto", "=="].includes(testName)) return equal(value, expected ?? nothing);
  if (["ne", "!="].includes(testName)) return !equal(value, expected ?? nothing);
  if (testName === "in") return contains(expected ?? nothing, value);
  const test = environment.tests.get(testName);
  if (!test) throw new Error(`unknown test '${testName}'`);
  return test(value, expected);
}

function extreme(items: TemplateValue[], isBetter: (a: string | number, b: string | number) => boolean): TemplateValue {
  let best = items[0] ?? nothing;
  for (const item of items) {
    if (typeof item.value !== typeof best.value || !["number", "string"].includes(typeof item.value)) {
      throw new Error("only numbers, or only strings, can be compared");
    }
    if (isBetter(item.value as string | number, best.value as string | number)) best = item;
  }
  return best;
}

function textOrNull(value: TemplateValue | undefined): string | null {
  return value?.type === "StringValue" ? (value.value as string) : null;
}
