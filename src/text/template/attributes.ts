// Attributes, items and slices of values. A template reaches the methods listed here and what it was given, nothing else.
// `.name` looks for a method first and `["name"]` for a key first, as in Jinja: schemas of arrays have a key `items`.
import { type Builtin, builtins, int, integer, integerOr, text, textOr } from "./builtins.ts";
import { equal } from "./comparison.ts";
import { braceFormat } from "./text-format.ts";
import { capitalise, join, pad, replace, splitLines, splitText, splitWords, strip } from "./text-functions.ts";
import {
  characters,
  type Dict,
  elements,
  findKey,
  Instance,
  isTrue,
  pairs,
  positioned,
  type Runtime,
  Tuple,
  typeName,
  type Value,
  View,
} from "./values.ts";

// The methods of Python's strings. Positions and lengths count characters. The length of a result is checked before it is built.

const STRING_METHODS = builtins<string>({
  "upper()": (s) => s.toUpperCase(),
  "lower()": (s) => s.toLowerCase(),
  "casefold()": (s) => s.toLowerCase().replaceAll("ß", "ss"),
  "capitalize()": (s) => capitalise(s),
  "title()": (s) => s.replace(/\p{L}+/gu, capitalise),
  "swapcase()": (s) => s.replace(/./gsu, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase())),
  "strip(chars)": (s, [chars]) => strip(s, "both", textOr(chars, null)),
  "lstrip(chars)": (s, [chars]) => strip(s, "left", textOr(chars, null)),
  "rstrip(chars)": (s, [chars]) => strip(s, "right", textOr(chars, null)),
  "removeprefix(prefix)": (s, [prefix]) => (s.startsWith(text(prefix)) ? s.slice(text(prefix).length) : s),
  "removesuffix(suffix)": (s, [suffix]) => (s.endsWith(text(suffix)) ? s.slice(0, s.length - text(suffix).length) : s),
  "replace(old, new, count)": (s, [before, after, count], { limits }) =>
    replace(s, text(before), text(after), integerOr(count, -1), limits.maxText),
  "format(*)": (s, _args, { limits }, call) => braceFormat(s, call, limits.maxText),
  "join(iterable)": (s, [iterable], { limits }) => join(elements(iterable).map(text), s, limits.maxText),
  "split(sep, maxsplit)": (s, args) => split(s, args, false),
  "rsplit(sep, maxsplit)": (s, args) => split(s, args, true),
  "splitlines(keepends)": (s, [keepEnds]) => splitLines(s, isTrue(keepEnds)),
  "partition(sep)": (s, [sep]) => {
    const [before, after] = splitText(s, text(sep), 1, false);
    return new Tuple(after === undefined ? [s, "", ""] : [before, sep, after]);
  },
  "rpartition(sep)": (s, [sep]) => {
    const [before, after] = splitText(s, text(sep), 1, true);
    return new Tuple(after === undefined ? ["", "", s] : [before, sep, after]);
  },
  "find(sub, start, end)": (s, args) => int(position(s, args, "indexOf")),
  "rfind(sub, start, end)": (s, args) => int(position(s, args, "lastIndexOf")),
  "index(sub, start, end)": (s, args) => int(found(position(s, args, "indexOf"))),
  "rindex(sub, start, end)": (s, args) => int(found(position(s, args, "lastIndexOf"))),
  "count(sub, start, end)": (s, args) => {
    const within = range(s, args).text;
    return int(args[0] === "" ? characters(within).length + 1 : within.split(text(args[0])).length - 1);
  },
  "startswith(prefix, start, end)": (s, args) =>
    alternatives(args).some((part) => range(s, args).text.startsWith(part)),
  "endswith(suffix, start, end)": (s, args) => alternatives(args).some((part) => range(s, args).text.endsWith(part)),
  "isdigit()": (s) => /^[\p{Nd}²³¹⁰-⁹₀-₉]+$/u.test(s),
  "isdecimal()": (s) => /^\p{Nd}+$/u.test(s),
  "isnumeric()": (s) => /^\p{N}+$/u.test(s),
  "isalpha()": (s) => /^\p{L}+$/u.test(s),
  "isalnum()": (s) => /^[\p{L}\p{N}]+$/u.test(s),
  "isspace()": (s) => s !== "" && strip(s, "left", null) === "",
  "isupper()": (s) => s !== s.toLowerCase() && s === s.toUpperCase(),
  "islower()": (s) => s !== s.toUpperCase() && s === s.toLowerCase(),
  "zfill(width)": (s, [width], { limits }) => {
    const sign = /^[+-]/.exec(s)?.[0] ?? "";
    return sign + pad(s.slice(sign.length), integer(width) - sign.length, "0", 1, limits.maxText);
  },
  "ljust(width, fillchar)": (s, args, { limits }) => padded(s, args, 0, limits.maxText),
  "rjust(width, fillchar)": (s, args, { limits }) => padded(s, args, 1, limits.maxText),
  "center(width, fillchar)": (s, args, { limits }) => padded(s, args, 0.5, limits.maxText),
});

function split(s: string, [sep, maxsplit]: readonly Value[], fromRight: boolean): string[] {
  const separator = textOr(sep, null);
  const limit = integerOr(maxsplit, -1);
  return separator === null ? splitWords(s, limit, fromRight) : splitText(s, separator, limit, fromRight);
}

/** The part of the text that the optional arguments `start` and `end` name, and how many characters come before it. */
function range(s: string, [, start, end]: readonly Value[]): { text: string; from: number } {
  const [first, last] = [integerOr(start, null), integerOr(end, null)];
  if (first === null && last === null) return { text: s, from: 0 };
  const letters = Array.from(s);
  const from = first === null ? 0 : first < 0 ? Math.max(0, letters.length + first) : first;
  return { text: letters.slice(from, last ?? letters.length).join(""), from };
}

function position(s: string, args: readonly Value[], search: "indexOf" | "lastIndexOf"): number {
  const within = range(s, args);
  const at = within.text[search](text(args[0]));
  return at < 0 ? -1 : within.from + characters(within.text.slice(0, at)).length;
}

function found(at: number): number {
  if (at < 0) throw new Error("substring not found");
  return at;
}

function alternatives([first]: readonly Value[]): string[] {
  return first instanceof Tuple ? first.items.map(text) : [text(first)];
}

function padded(s: string, [width, fill]: readonly Value[], before: 0 | 0.5 | 1, limit: number): string {
  return pad(s, integer(width), textOr(fill, " "), before, limit);
}

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
