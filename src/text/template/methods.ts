// Methods of values. What is called is the method, also where an object has a key of that name: schemas of arrays have
// `items`.

import type { TemplateValue } from "./library.ts";
import { equal } from "./operators.ts";
import { callStringMethod } from "./string-methods.ts";
import {
  type CallArguments,
  integerOf,
  keyOf,
  keyValue,
  listOf,
  none,
  nothing,
  objectOf,
  pairsIn,
  type TemplateEntries,
} from "./values.ts";

type Method = (args: CallArguments) => TemplateValue;

/** null: not a method of this value. */
export function methodOf(target: TemplateValue, name: string, maxText: number): Method | null {
  if (target.type === "StringValue") return (args) => callStringMethod(name, target.value as string, args, maxText);
  if (target.type === "ObjectValue") return objectMethod(target.value as TemplateEntries, name);
  return Array.isArray(target.value) ? listMethod(target.value, name) : null;
}

function objectMethod(entries: TemplateEntries, name: string): Method | null {
  switch (name) {
    case "get":
      return ({ positional: [key = nothing, fallback], named }) =>
        entries.get(keyOf(key) ?? "") ?? fallback ?? named.get("default") ?? none;
    case "items":
      return () => listOf(pairsIn(entries));
    case "keys":
      return () => listOf(Array.from(entries.keys(), keyValue));
    case "values":
      return () => listOf([...entries.values()]);
    case "copy":
      return () => objectOf(new Map(entries));
    default:
      return null;
  }
}

function listMethod(items: readonly TemplateValue[], name: string): Method | null {
  switch (name) {
    case "index":
      return ({ positional: [item = nothing] }) => {
        const at = items.findIndex((element) => equal(element, item));
        if (at < 0) throw new Error("index() found no such element");
        return integerOf(at);
      };
    case "count":
      return ({ positional: [item = nothing] }) => integerOf(items.filter((element) => equal(element, item)).length);
    case "copy":
      return () => listOf([...items]);
    default:
      return null;
  }
}
