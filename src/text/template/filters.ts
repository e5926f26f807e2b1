// Filters over single values done our way: tojson exactly as json.dumps, trim and length as Python's, printf-style
// format, and those that could blow a text up (replace, indent) with the size checked first.

import { argument, integerOrNull, textOrNull } from "./arguments.ts";
import type { TemplateValue } from "./library.ts";
import { round, toFloat, toInteger } from "./number-filters.ts";
import { pythonJson, pythonStr } from "./python-format.ts";
import { printf } from "./text-format.ts";
import { capitalise, characterCount, checkLength, escapeHtml, indent, pad, replace, strip } from "./text-functions.ts";
import {
  type CallArguments,
  floatOf,
  integerOf,
  isMarkup,
  listOf,
  markupOf,
  pairsIn,
  type TemplateEntries,
  textOf,
} from "./values.ts";

type ValueFilter = (operand: TemplateValue, args: CallArguments, maxText: number) => TemplateValue;

const MAX_JSON_INDENT = 32;

const valueFilters: Readonly<Record<string, ValueFilter>> = {
  tojson: (operand, args) => textOf(json(operand, args)),
  string: (operand) => textOf(pythonStr(operand)),
  upper: (operand) => textOf(pythonStr(operand).toUpperCase()),
  lower: (operand) => textOf(pythonStr(operand).toLowerCase()),
  capitalize: (operand) => textOf(capitalise(pythonStr(operand))),
  // A word begins after space, a hyphen or an opening bracket, not after every sign as with str.title().
  title: (operand) =>
    textOf(
      pythonStr(operand)
        .split(/([-\s({[<]+)/)
        .map(capitalise)
        .join(""),
    ),
  int: toInteger,
  float: toFloat,
  round,
  abs: ({ type, value }) => (type === "FloatValue" ? floatOf : integerOf)(Math.abs(numberOf(value))),
  default: fallback,
  d: fallback,
  safe: (operand) => markupOf(pythonStr(operand)),
  e: escapeMarkup,
  escape: escapeMarkup,
  items: (operand) => listOf(pairsOf(operand)),
  wordcount: (operand) => integerOf(pythonStr(operand).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
  center: (operand, args, maxText) =>
    textOf(pad(pythonStr(operand), integerOrNull(argument(args, 0, "width")) ?? 80, " ", 0.5, maxText)),
  urlencode: (operand) => textOf(encodeURIComponent(pythonStr(operand)).replace(/[!'()*]|%2F/g, encodeRest)),
  truncate(operand, args) {
    const letters = Array.from(pythonStr(operand));
    const length = integerOrNull(argument(args, 0, "length")) ?? 255;
    const end = textOrNull(argument(args, 2, "end")) ?? "...";
    if (letters.length <= length + (integerOrNull(argument(args, 3, "leeway")) ?? 5)) return textOf(letters.join(""));
    const kept = letters.slice(0, Math.max(0, length - characterCount(end))).join("");
    const wholeWords = !argument(args, 1, "killwords")?.__bool__().value && kept.includes(" ");
    return textOf((wholeWords ? kept.slice(0, kept.lastIndexOf(" ")) : kept) + end);
  },
  trim: (operand, args) => textOf(strip(pythonStr(operand), "both", textOrNull(argument(args, 0, "chars")))),
  length: (operand) => integerOf(lengthOf(operand)),
  count: (operand) => integerOf(lengthOf(operand)),
  format: (operand, args, maxText) => textOf(printf(pythonStr(operand), args, maxText)),
  replace(operand, args, maxText) {
    const [from, to] = [textOrNull(argument(args, 0, "old")), textOrNull(argument(args, 1, "new"))];
    if (from === null || to === null) throw new Error("replace needs two strings");
    return textOf(replace(pythonStr(operand), from, to, integerOrNull(argument(args, 2, "count")) ?? -1, maxText));
  },
  indent(operand, args, maxText) {
    const width = argument(args, 0, "width");
    const margin = textOrNull(width) ?? spaces(integerOrNull(width) ?? 4, maxText);
    const first = argument(args, 1, "first")?.__bool__().value ?? false;
    const blank = argument(args, 2, "blank")?.__bool__().value ?? false;
    return textOf(indent(pythonStr(operand), margin, first, blank, maxText));
  },
};

export function valueFilter(name: string): ValueFilter | null {
  return Object.hasOwn(valueFilters, name) ? valueFilters[name]! : null;
}

function fallback(operand: TemplateValue, args: CallArguments): TemplateValue {
  const replacement = argument(args, 0, "default_value") ?? textOf("");
  const emptyToo = argument(args, 1, "boolean")?.__bool__().value ?? false;
  return operand.type === "UndefinedValue" || (emptyToo && !operand.__bool__().value) ? replacement : operand;
}

function escapeMarkup(operand: TemplateValue): TemplateValue {
  return isMarkup(operand) ? operand : markupOf(escapeHtml(pythonStr(operand)));
}

/** The entries of an object as (key, value); an undefined value has none. */
export function pairsOf(operand: TemplateValue): TemplateValue[] {
  if (operand.type === "UndefinedValue") return [];
  if (!(operand.value instanceof Map)) throw new Error(`a ${operand.type} has no entries`);
  return pairsIn(operand.value as TemplateEntries);
}

/** The signs on which encodeURIComponent and Python's quote differ. */
function encodeRest(sign: string): string {
  return sign === "%2F" ? "/" : `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;
}

function numberOf(value: unknown): number {
  if (typeof value !== "number" && typeof value !== "boolean") throw new Error("a number is needed");
  return Number(value);
}

function json(operand: TemplateValue, args: CallArguments): string {
  const indentation = argument(args, 1, "indent");
  const width = textOrNull(indentation)?.length ?? integerOrNull(indentation) ?? null;
  if (width !== null && !(width >= 0 && width <= MAX_JSON_INDENT)) {
    throw new Error(`tojson indents by 0 to ${MAX_JSON_INDENT} spaces`);
  }
  const separators = argument(args, 2, "separators")?.value;
  const pair = Array.isArray(separators) ? separators.map(pythonStr) : null;
  if (pair && pair.length !== 2) throw new Error("separators must be two strings");
  return pythonJson(operand, {
    indent: width === null ? null : (textOrNull(indentation) ?? " ".repeat(width)),
    ensureAscii: argument(args, 0, "ensure_ascii")?.__bool__().value ?? false,
    sortKeys: argument(args, 3, "sort_keys")?.__bool__().value ?? false,
    separators: pair ? [pair[0]!, pair[1]!] : null,
  });
}

function lengthOf(operand: TemplateValue): number {
  const { value } = operand;
  if (typeof value === "string") return characterCount(value);
  if (Array.isArray(value)) return value.length;
  if (value instanceof Map) return value.size;
  if (operand.type === "UndefinedValue") return 0;
  throw new Error(`a ${operand.type} has no length`);
}

function spaces(count: number, maxText: number): string {
  checkLength(count, maxText);
  return " ".repeat(Math.max(0, count));
}
