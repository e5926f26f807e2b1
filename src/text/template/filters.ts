// All filters by name: those of Jinja that published chat templates use, and their close relatives.

import type { Builtin } from "./builtins.ts";
import { LIST_FILTERS } from "./list-filters.ts";
import { NUMBER_FILTERS } from "./number-filters.ts";
import type { Runtime } from "./runtime.ts";
import { TEXT_FILTERS } from "./text-filters.ts";
import { type CallArguments, plain, type Value } from "./values.ts";

const FILTERS: ReadonlyMap<string, Builtin<Value>> = new Map([...TEXT_FILTERS, ...NUMBER_FILTERS, ...LIST_FILTERS]);

/** Filters that see whether a text is marked as safe. */
const MARKUP_FILTERS = new Set(["safe", "e", "escape", "string"]);

export function applyFilter(name: string, operand: Value, args: CallArguments, runtime: Runtime): Value {
  const filter = FILTERS.get(name);
  if (!filter) throw new Error(`unknown filter '${name}'`);
  return filter(MARKUP_FILTERS.has(name) ? operand : plain(operand), args, runtime);
}
