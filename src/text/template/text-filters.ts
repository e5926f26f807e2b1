// Filters over single values: tojson exactly as json.dumps, and those that make texts.

import { builtins, int, integer, integerOr, text, textOr } from "./builtins.ts";
import { pythonJson, pythonStr } from "./python-format.ts";
import { percentFormat } from "./text-format.ts";
import { capitalise, checkLength, escapeHtml, indent, replace, strip } from "./text-functions.ts";
import { elements, isTrue, lengthOf, Markup, Once, pairs, Tuple, type Value } from "./values.ts";

const MAX_JSON_INDENT = 32;

const escapeMarkup = (value: Value): Value =>
  value instanceof Markup ? value : new Markup(escapeHtml(pythonStr(value)));
const fallBack = (value: Value, [fallback = "", emptyToo]: readonly Value[]): Value =>
  value === undefined || (isTrue(emptyToo) && !isTrue(value)) ? fallback : value;

export const TEXT_FILTERS = builtins<Value>({
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
