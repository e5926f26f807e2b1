// Template values as Python prints them: str() for {{ ... }}, repr() inside containers, json.dumps() for tojson.
// Prompts must match, byte for byte, what models saw when Python rendered the same template in training.

import type { TemplateValue } from "./library.ts";
import { keyValue, type LongInteger, type TemplateEntries } from "./values.ts";

export interface JsonStyle {
  /** What each level is indented by; null: everything on one line. */
  indent: string | null;
  ensureAscii: boolean;
  sortKeys: boolean;
  separators: readonly [item: string, key: string] | null;
}

export function pythonStr(value: TemplateValue): string {
  if (value.type === "StringValue") return value.value as string;
  return value.type === "UndefinedValue" ? "" : pythonRepr(value);
}

export function pythonRepr(value: TemplateValue): string {
  switch (value.type) {
    case "StringValue":
      return quote(value.value as string);
    case "NullValue":
      return "None";
    case "UndefinedValue":
      return "Undefined";
    case "BooleanValue":
      return value.value ? "True" : "False";
    case "ArrayValue":
      return `[${items(value).map(pythonRepr).join(", ")}]`;
    case "TupleValue":
      return `(${items(value).map(pythonRepr).join(", ")}${items(value).length === 1 ? "," : ""})`;
    case "ObjectValue":
    case "NamespaceValue":
      return `{${entries(value)
        .map(([key, entry]) => `${pythonRepr(keyValue(key))}: ${pythonRepr(entry)}`)
        .join(", ")}}`;
    default:
      return number(value);
  }
}

export function pythonJson(value: TemplateValue, style: JsonStyle): string {
  const [itemSeparator, keySeparator] = style.separators ?? [style.indent === null ? ", " : ",", ": "];
  const text = (raw: string): string => (style.ensureAscii ? escapeNonAscii(JSON.stringify(raw)) : JSON.stringify(raw));
  const wrap = (open: string, parts: string[], close: string, depth: number): string => {
    if (parts.length === 0) return open + close;
    if (style.indent === null) return open + parts.join(itemSeparator) + close;
    const margin = `\n${style.indent.repeat(depth + 1)}`;
    return `${open}${margin}${parts.join(itemSeparator + margin)}\n${style.indent.repeat(depth)}${close}`;
  };
  const write = (item: TemplateValue, depth: number): string => {
    switch (item.type) {
      case "StringValue":
        return text(item.value as string);
      case "NullValue":
      case "UndefinedValue":
        return "null";
      case "BooleanValue":
        return item.value ? "true" : "false";
      case "ArrayValue":
      case "TupleValue":
        return wrap(
          "[",
          items(item).map((entry) => write(entry, depth + 1)),
          "]",
          depth,
        );
      case "ObjectValue":
      case "NamespaceValue": {
        const sorted = style.sortKeys ? entries(item).sort(([a], [b]) => (a < b ? -1 : 1)) : entries(item);
        const parts = sorted.map(([key, entry]) => text(String(key)) + keySeparator + write(entry, depth + 1));
        return wrap("{", parts, "}", depth);
      }
      default:
        return number(item);
    }
  };
  return write(value, 0);
}

function number(value: TemplateValue): string {
  if (value.type === "IntegerValue") return (value as LongInteger).digits ?? wholeNumber(value.value as number);
  if (value.type === "FloatValue") return float(value.value as number);
  throw new Error(`A ${value.type} cannot be written as text`);
}

function wholeNumber(value: number): string {
  return Math.abs(value) < 1e21 ? String(value) : BigInt(value).toString();
}

/** The shortest digits that read back the same, in positional notation for exponents -4 to 15. */
function float(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const [digits, exponentText] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 16) {
    const positional = Object.is(value, -0) ? "-0" : String(value);
    return Number.isInteger(value) ? `${positional}.0` : positional;
  }
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(
    /[\\\n\r\t]/g,
    (char) => ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[char]!,
  );
  return mark + escaped.replaceAll(mark, `\\${mark}`) + mark;
}

function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function items(value: TemplateValue): TemplateValue[] {
  return value.value as TemplateValue[];
}

function entries(value: TemplateValue): [string | number, TemplateValue][] {
  return [...(value.value as TemplateEntries)];
}
