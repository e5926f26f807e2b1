// All filters by name: those of Jinja that published chat templates use, and their close relatives.
import { itemOf } from "./attributes.ts";
import { type Builtin, builtins, int, integer, integerOr, text, textOr } from "./builtins.ts";
import { compare, isNumeric } from "./comparison.ts";
import { passesTest } from "./is-tests.ts";
import { binary } from "./operators.ts";
import { fixedPoint, pythonJson, pythonStr } from "./python-format.ts";
import { percentFormat } from "./text-format.ts";
import { capitalise, checkLength, escapeHtml, indent, join, replace, strip } from "./text-functions.ts";
import {
  type CallArguments,
  elements,
  isTrue,
  type Key,
  keyOf,
  lengthOf,
  Markup,
  Once,
  pairs,
  plain,
  type Runtime,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

// Filters over lists as Jinja defines them: the undefined value counts as an empty list, a missing attribute is undefined,
// the first of no elements is undefined, and map can apply another filter to each element.

const LIST_FILTERS = builtins<Value>({
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

// Filters that make numbers: int and float as Python reads them, round as Python rounds.

const NUMBER_FILTERS = builtins<Value>({
  "int(default, base)": (value, [fallback = 0n, base]) => {
    if (value === undefined) throw new Error("int needs a defined value");
    if (typeof value === "bigint" || typeof value === "boolean") return BigInt(value);
    const whole = typeof value === "string" ? parseWhole(value.trim().toLowerCase(), integerOr(base, 10)) : null;
    if (whole !== null) return whole;
    const number = typeof value === "string" ? parseFraction(value) : value;
    return typeof number === "number" && Number.isFinite(number) ? BigInt(Math.trunc(number)) : fallback;
  },
  "float(default)": (value, [fallback = 0]) => {
    if (value === undefined) throw new Error("float needs a defined value");
    if (isNumeric(value)) return Number(value);
    return (typeof value === "string" ? parseFraction(value) : null) ?? fallback;
  },
  "abs()": (value) => {
    if (!isNumeric(value)) throw new Error(`a number is needed, not '${typeName(value)}'`);
    if (typeof value === "number") return Math.abs(value);
    return BigInt(value) < 0n ? -BigInt(value) : BigInt(value);
  },
  "round(precision, method)": (value, [precision = 0n, method = "common"]) => {
    if (!isNumeric(value)) throw new Error(`a number is needed, not '${typeName(value)}'`);
    const digits = integer(precision);
    if (Math.abs(digits) > 99) throw new Error("round takes at most 99 digits");
    const scale = 10 ** digits;
    if (method === "ceil") return Math.ceil(Number(value) * scale) / scale;
    if (method === "floor") return Math.floor(Number(value) * scale) / scale;
    if (method !== "common") throw new Error("round knows the methods common, ceil and floor");
    if (typeof value === "number") return roundFloat(value, digits);
    return digits >= 0 ? BigInt(value) : BigInt(roundFloat(Number(value), digits));
  },
});

/** To the nearest, and to the even neighbour where both are as near. */
function roundFloat(value: number, digits: number): number {
  if (!Number.isFinite(value) || Math.abs(value) >= 1e21) return value;
  if (digits < 0) {
    const scaled = value / 10 ** -digits;
    const isTie = Math.abs(scaled % 1) === 0.5;
    return (isTie ? 2 * Math.round(scaled / 2) : Math.round(scaled)) * 10 ** -digits;
  }
  return Number(fixedPoint(value, digits));
}

/** Digits of the base alone, with the prefix Python allows for it; null for anything else. */
function parseWhole(text: string, base: number): bigint | null {
  const prefixes: Readonly<Record<number, string>> = { 2: "0b", 8: "0o", 16: "0x" };
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  let digits = text.slice(sign.length);
  if (prefixes[base] && digits.startsWith(prefixes[base])) digits = digits.slice(2);
  digits = digits.replace(/(?<=[\da-z])_(?=[\da-z])/g, "");
  if (!(base >= 2 && base <= 36) || digits === "" || digits.length > 4300) return null;
  const values = Array.from(digits, (digit) => "0123456789abcdefghijklmnopqrstuvwxyz".indexOf(digit));
  if (values.some((value) => value < 0 || value >= base)) return null;
  const magnitude =
    base === 10 ? BigInt(digits) : values.reduce((sum, value) => sum * BigInt(base) + BigInt(value), 0n);
  return sign === "-" ? -magnitude : magnitude;
}

function parseFraction(text: string): number | null {
  const written = text.trim().toLowerCase();
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(written)) return Number(written);
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(written);
  if (!special) return null;
  return special[2] === "nan" ? Number.NaN : special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

// Filters over single values: tojson exactly as json.dumps, and those that make texts.

const MAX_JSON_INDENT = 32;

const escapeMarkup = (value: Value): Value =>
  value instanceof Markup ? value : new Markup(escapeHtml(pythonStr(value)));
const fallBack = (value: Value, [fallback = "", emptyToo]: readonly Value[]): Value =>
  value === undefined || (isTrue(emptyToo) && !isTrue(value)) ? fallback : value;

const TEXT_FILTERS = builtins<Value>({
  "tojson(ensure_ascii, indent, separators, sort_keys)": (value, [ensureAscii, indentation, separators, sortKeys]) => {
    const margin = typeof indentation === "string" ? indentation : spaces(integerOr(indentation, null));
    if ((margin?.length ?? 0) > MAX_JSON_INDENT) throw new Error(`tojson indents by 0 to ${MAX_JSON_INDENT} spaces`);
    const [item, key, ...more] = separators ? elements(separators).map(text) : [];
    if (separators && (item === undefined || key === undefined || more.length > 0)) {
      throw new Error("separators must be two strings");
    }
    return pythonJson(value, {
      indent: margin,
      ensureAscii: isTrue(ensureAscii),
      sortKeys: isTrue(sortKeys),
      separators: item === undefined || key === undefined ? null : [item, key],
    });
  },
  "string()": (value) => (value instanceof Markup ? value : pythonStr(value)),
  "upper()": (value) => pythonStr(value).toUpperCase(),
  "lower()": (value) => pythonStr(value).toLowerCase(),
  "capitalize()": (value) => capitalise(pythonStr(value)),
  // A word begins after space, a hyphen or an opening bracket, not after every sign as with str.title().
  "title()": (value) =>
    pythonStr(value)
      .split(/([-\s({[<]+)/)
      .map(capitalise)
      .join(""),
  "default(default_value, boolean)": fallBack,
  "d(default_value, boolean)": fallBack,
  "safe()": (value) => new Markup(pythonStr(value)),
  "e()": escapeMarkup,
  "escape()": escapeMarkup,
  "items()": (value) => {
    if (value !== undefined && !(value instanceof Map)) throw new Error("items needs a dict");
    return new Once(value === undefined ? [] : pairs(value));
  },
  "trim(chars)": (value, [chars]) => strip(pythonStr(value), "both", textOr(chars, null)),
  "length()": (value) => int(lengthOf(value)),
  "count()": (value) => int(lengthOf(value)),
  "format(*)": (value, args, { limits }, { named }) =>
    percentFormat(pythonStr(value), named.size > 0 ? new Map(named) : new Tuple(args), limits.maxText),
  "replace(old, new, count)": (value, [before, after, count], { limits }) =>
    replace(pythonStr(value), pythonStr(before), pythonStr(after), integerOr(count, -1), limits.maxText),
  "indent(width, first, blank)": (value, [width, first, blank], { limits }) => {
    const margin = typeof width === "string" ? width : spaces(integer(width ?? 4n), limits.maxText);
    return indent(text(value), margin, isTrue(first), isTrue(blank), limits.maxText);
  },
});

function spaces(count: number, maxText?: number): string;
function spaces(count: number | null, maxText?: number): string | null;
function spaces(count: number | null, maxText = 1_000): string | null {
  checkLength(count ?? 0, maxText);
  return count === null ? null : " ".repeat(Math.max(0, count));
}

const FILTERS: ReadonlyMap<string, Builtin<Value>> = new Map([...TEXT_FILTERS, ...NUMBER_FILTERS, ...LIST_FILTERS]);

/** Filters that see whether a text is marked as safe. */
const MARKUP_FILTERS = new Set(["safe", "e", "escape", "string"]);

export function applyFilter(name: string, operand: Value, args: CallArguments, runtime: Runtime): Value {
  const filter = FILTERS.get(name);
  if (!filter) throw new Error(`unknown filter '${name}'`);
  return filter(MARKUP_FILTERS.has(name) ? operand : plain(operand), args, runtime);
}
