// Values as Python prints them: str() for {{ ... }}, repr() inside containers, json.dumps() for tojson.
// Prompts must match, byte for byte, what models saw when Python rendered the same template in training.

import { compare } from "./comparison.ts";
import { type Key, Markup, Once, Range, Tuple, typeName, type Value, View } from "./values.ts";

export interface JsonStyle {
  /** What each level is indented by; null: everything on one line. */
  indent: string | null;
  ensureAscii: boolean;
  sortKeys: boolean;
  separators: readonly [item: string, key: string] | null;
}

const PLAIN_JSON: JsonStyle = { indent: null, ensureAscii: false, sortKeys: false, separators: null };

/** What Python does not print as it is: control, format and private characters, and every space but " ". */
const UNPRINTABLE = /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

export function pythonStr(value: Value): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  return value instanceof Markup ? value.text : pythonRepr(value);
}

export function pythonRepr(value: Value): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "bigint":
      return String(value);
    case "number":
      return float(value, "nan", "inf");
    case "boolean":
      return value ? "True" : "False";
    case "undefined":
      return "Undefined";
  }
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${list(value)}]`;
  if (value instanceof Map) {
    return `{${Array.from(value, ([key, item]) => `${pythonRepr(key)}: ${pythonRepr(item)}`).join(", ")}}`;
  }
  if (value instanceof Tuple) return `(${list(value.items)}${value.items.length === 1 ? "," : ""})`;
  if (value instanceof View) return `${value.name}([${list(value.items)}])`;
  if (value instanceof Markup) return `Markup(${quote(value.text)})`;
  if (value instanceof Range) {
    return `range(${value.start}, ${value.stop}${value.step === 1n ? "" : `, ${value.step}`})`;
  }
  const hint = value instanceof Once ? ": add '| list'" : "";
  throw new Error(`a '${typeName(value)}' cannot be printed${hint}`);
}

function list(items: readonly Value[]): string {
  return items.map(pythonRepr).join(", ");
}

export function pythonJson(value: Value, style: JsonStyle = PLAIN_JSON): string {
  const [itemSeparator, keySeparator] = style.separators ?? [style.indent === null ? ", " : ",", ": "];
  const text = (raw: string): string => (style.ensureAscii ? escapeNonAscii(JSON.stringify(raw)) : JSON.stringify(raw));
  const wrap = (open: string, parts: string[], close: string, depth: number): string => {
    if (parts.length === 0) return open + close;
    if (style.indent === null) return open + parts.join(itemSeparator) + close;
    const margin = `\n${style.indent.repeat(depth + 1)}`;
    return `${open}${margin}${parts.join(itemSeparator + margin)}\n${style.indent.repeat(depth)}${close}`;
  };
  const write = (item: Value, depth: number): string => {
    if (typeof item === "string") return text(item);
    if (item instanceof Markup) return text(item.text);
    if (item === null) return "null";
    if (typeof item === "boolean") return item ? "true" : "false";
    if (typeof item === "bigint") return String(item);
    if (typeof item === "number") return float(item, "NaN", "Infinity");
    if (Array.isArray(item) || item instanceof Tuple) {
      const items: readonly Value[] = item instanceof Tuple ? item.items : item;
      const parts = items.map((entry) => write(entry, depth + 1));
      return wrap("[", parts, "]", depth);
    }
    if (!(item instanceof Map)) throw new Error(`an object of type '${typeName(item)}' cannot be written as JSON`);
    const entries: [Key, Value][] = [...item];
    if (style.sortKeys) entries.sort(([a], [b]) => compare(a, b));
    const key = (raw: Key): string => text(typeof raw === "string" ? raw : write(raw, 0));
    const parts = entries.map(([name, entry]) => key(name) + keySeparator + write(entry, depth + 1));
    return wrap("{", parts, "}", depth);
  };
  return write(value, 0);
}

/** With a number of digits after the point; a tie goes to the even digit. */
export function fixedPoint(value: number, digits: number): string {
  // A tie has an exact binary form with one more decimal place, a 5. toFixed() is exact otherwise.
  const longer = value.toFixed(digits + 1);
  const isTie = longer.endsWith("5") && Number.isInteger(value * 2 ** (digits + 1));
  const cut = longer.slice(0, digits === 0 ? -2 : -1);
  return isTie && /[02468]$/.test(cut) ? cut : value.toFixed(digits);
}

/** The shortest digits that read back the same, in positional notation for exponents -4 to 15. */
function float(value: number, notANumber: string, infinity: string): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? notANumber : value > 0 ? infinity : `-${infinity}`;
  const [digits, exponentText] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 16) {
    const positional = Object.is(value, -0) ? "-0" : String(value);
    return Number.isInteger(value) ? `${positional}.0` : positional;
  }
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(UNPRINTABLE, (char) => {
    const code = char.codePointAt(0) ?? 0;
    const [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return SHORT_ESCAPES[char] ?? `\\${letter}${code.toString(16).padStart(width, "0")}`;
  });
  return mark + escaped.replaceAll(mark, `\\${mark}`) + mark;
}

function escapeNonAscii(json: string): string {
  return json.replace(/[\x7f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
