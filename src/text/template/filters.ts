// Filters over single values done our way: tojson exactly as json.dumps, trim and length as Python's, printf-style
// format, and those that could blow a text up (replace, indent) with the size checked first.

import type { TemplateValue } from "./library.ts";
import { pythonJson, pythonStr } from "./python-format.ts";
import { printf } from "./text-format.ts";
import { capitalise, characterCount, checkLength, indent, replace, strip } from "./text-functions.ts";
import { integerOf, textOf } from "./values.ts";

export interface CallArguments {
  positional: TemplateValue[];
  named: Map<string, TemplateValue>;
}

type ValueFilter = (operand: TemplateValue, args: CallArguments, maxText: number) => TemplateValue;

const maxJsonIndent = 32;

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
  trim: (operand, args) => textOf(strip(pythonStr(operand), "both", optionalText(argument(args, 0, "chars")))),
  length: (operand) => integerOf(lengthOf(operand)),
  count: (operand) => integerOf(lengthOf(operand)),
  format: (operand, args, maxText) => textOf(printf(pythonStr(operand), args, maxText)),
  replace(operand, args, maxText) {
    const [from, to] = [optionalText(argument(args, 0, "old")), optionalText(argument(args, 1, "new"))];
    if (from === null || to === null) throw new Error("replace needs two strings");
    return textOf(replace(pythonStr(operand), from, to, optionalNumber(argument(args, 2, "count")) ?? -1, maxText));
  },
  indent(operand, args, maxText) {
    const width = argument(args, 0, "width");
    const margin = optionalText(width) ?? spaces(optionalNumber(width) ?? 4, maxText);
    const first = argument(args, 1, "first")?.__bool__().value ?? false;
    const blank = argument(args, 2, "blank")?.__bool__().value ?? false;
    return textOf(indent(pythonStr(operand), margin, first, blank, maxText));
  },
};

export function valueFilter(name: string): ValueFilter | null {
  return Object.hasOwn(valueFilters, name) ? valueFilters[name]! : null;
}

function json(operand: TemplateValue, { named }: CallArguments): string {
  const indentation = optionalNumber(named.get("indent"));
  if (indentation !== null && !(indentation >= 0 && indentation <= maxJsonIndent)) {
    throw new Error(`tojson indents by 0 to ${maxJsonIndent} spaces`);
  }
  const separators = named.get("separators")?.value;
  const pair = Array.isArray(separators) ? separators.map(pythonStr) : null;
  if (pair && pair.length !== 2) throw new Error("separators must be two strings");
  return pythonJson(operand, {
    indent: indentation,
    ensureAscii: named.get("ensure_ascii")?.__bool__().value ?? false,
    sortKeys: named.get("sort_keys")?.__bool__().value ?? false,
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

function argument(args: CallArguments, position: number, name: string): TemplateValue | undefined {
  return args.positional[position] ?? args.named.get(name);
}

function optionalText(value: TemplateValue | undefined): string | null {
  return value?.type === "StringValue" ? (value.value as string) : null;
}

function optionalNumber(value: TemplateValue | undefined): number | null {
  return value?.type === "IntegerValue" ? (value.value as number) : null;
}
