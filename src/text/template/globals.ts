// The functions every template can call: those of Jinja, and raise_exception and strftime_now of chat templates.
import { integer, text } from "./builtins.ts";
import { pythonStr } from "./python-format.ts";
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

// Python's strftime for templates that print the date, always in English and in local time.

const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const MONTHS = "January February March April May June July August September October November December".split(" ");
const COMPOUND: Readonly<Record<string, string>> = {
  c: "%a %b %e %H:%M:%S %Y",
  D: "%m/%d/%y",
  F: "%Y-%m-%d",
  R: "%H:%M",
  T: "%H:%M:%S",
  X: "%H:%M:%S",
  x: "%m/%d/%y",
};

/** Unknown directives stay as they are; "%-d" drops the leading zero. */
function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (directive, minus: string, letter: string) => {
    const compound = COMPOUND[letter];
    const text = compound ? strftime(date, compound) : write(date, letter);
    return minus === "" ? (text ?? directive) : (text?.replace(/^[0 ]+(?=.)/, "") ?? directive);
  });
}

function write(date: Date, letter: string): string | undefined {
  const two = (value: number): string => String(value).padStart(2, "0");
  const weekday = WEEKDAYS[date.getDay()]!;
  const month = MONTHS[date.getMonth()]!;
  const start = Date.UTC(date.getFullYear(), 0, 0);
  const dayOfYear = (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - start) / 86_400_000;
  const directives: Readonly<Record<string, string>> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    e: String(date.getDate()).padStart(2, " "),
    H: two(date.getHours()),
    I: two(date.getHours() % 12 || 12),
    p: date.getHours() < 12 ? "AM" : "PM",
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    f: `${String(date.getMilliseconds()).padStart(3, "0")}000`,
    j: String(dayOfYear).padStart(3, "0"),
    A: weekday,
    a: weekday.slice(0, 3),
    w: String(date.getDay()),
    B: month,
    b: month.slice(0, 3),
    h: month.slice(0, 3),
    "%": "%",
  };
  return directives[letter];
}

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
