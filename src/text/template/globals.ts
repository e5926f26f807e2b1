// The functions every template can call: those of Jinja, and raise_exception and strftime_now of chat templates.

import { integer, text } from "./builtins.ts";
import { pythonStr } from "./python-format.ts";
import { strftime } from "./strftime.ts";
import {
  type CallArguments,
  type Callable,
  elements,
  type Key,
  keyOf,
  Namespace,
  Range,
  type Value,
} from "./values.ts";

/** What a template raises on purpose; the message is meant for the caller, word for word. */
export class Raised extends Error {}

export const GLOBALS: ReadonlyMap<string, Callable> = new Map<string, Callable>([
  [
    "raise_exception",
    ({ positional: [message] }) => {
      throw new Raised(pythonStr(message));
    },
  ],
  ["strftime_now", ({ positional: [format] }) => strftime(new Date(), text(format))],
  [
    "range",
    ({ positional: [first, second, step = 1n] }) => {
      const [start, stop] = second === undefined ? [0n, first] : [first, second];
      return new Range(BigInt(integer(start)), BigInt(integer(stop)), BigInt(integer(step)));
    },
  ],
  ["dict", (args) => dictOf(args)],
  ["namespace", (args) => new Namespace(new Map([...dictOf(args)].map(([name, value]) => [pythonStr(name), value])))],
]);

function dictOf({ positional: [source], named }: CallArguments): Map<Key, Value> {
  const entries = source instanceof Map ? new Map<Key, Value>(source) : new Map<Key, Value>();
  for (const pair of source instanceof Map ? [] : elements(source)) {
    const [key, value, ...more] = elements(pair);
    if (value === undefined || more.length > 0) throw new Error("dict() needs pairs");
    entries.set(keyOf(key), value);
  }
  for (const [name, value] of named) entries.set(name, value);
  return entries;
}
