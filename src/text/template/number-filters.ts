// Filters that make numbers: int and float as Python reads them, round as Python rounds.

import type { TemplateValue } from "./library.ts";
import { type CallArguments, floatOf, integerOf } from "./values.ts";

export function toInteger({ value }: TemplateValue, { positional, named }: CallArguments): TemplateValue {
  const fallback = positional[0] ?? named.get("default") ?? integerOf(0);
  if (typeof value === "boolean") return integerOf(Number(value));
  if (typeof value === "number") return Number.isFinite(value) ? integerOf(Math.trunc(value)) : fallback;
  if (typeof value !== "string") return fallback;
  const base = (positional[1] ?? named.get("base"))?.value ?? 10;
  const whole = parseWhole(value.trim().toLowerCase(), base as number);
  if (whole !== null) return integerOf(whole);
  const number = parseFraction(value);
  return number !== null && Number.isFinite(number) ? integerOf(Math.trunc(number)) : fallback;
}

export function toFloat({ value }: TemplateValue, { positional, named }: CallArguments): TemplateValue {
  if (typeof value === "number" || typeof value === "boolean") return floatOf(Number(value));
  const number = typeof value === "string" ? parseFraction(value) : null;
  return number === null ? (positional[0] ?? named.get("default") ?? floatOf(0)) : floatOf(number);
}

export function round(operand: TemplateValue, { positional, named }: CallArguments): TemplateValue {
  const number = Number(operand.value);
  const precision = Number((positional[0] ?? named.get("precision"))?.value ?? 0);
  const method = (positional[1] ?? named.get("method"))?.value ?? "common";
  if (
    !["number", "boolean"].includes(typeof operand.value) ||
    !Number.isInteger(precision) ||
    Math.abs(precision) > 100
  ) {
    throw new Error("round needs a number and a whole number of digits");
  }
  const scale = 10 ** precision;
  if (method === "ceil") return floatOf(Math.ceil(number * scale) / scale);
  if (method === "floor") return floatOf(Math.floor(number * scale) / scale);
  if (method !== "common") throw new Error("round knows the methods common, ceil and floor");
  if (operand.type !== "FloatValue" && precision >= 0) return integerOf(number);
  const rounded = halfEven(number, precision, scale);
  return operand.type === "FloatValue" ? floatOf(rounded) : integerOf(rounded);
}

function halfEven(number: number, precision: number, scale: number): number {
  const scaled = number * scale;
  if (Math.abs(scaled % 1) === 0.5) return (2 * Math.round(scaled / 2)) / scale;
  return precision > 0 ? Number(number.toFixed(precision)) : Math.round(scaled) / scale;
}

/** Digits of the base alone, with the prefix Python allows for it; null for anything else. */
function parseWhole(text: string, base: number): number | null {
  const prefixes: Readonly<Record<number, string>> = { 2: "0b", 8: "0o", 16: "0x" };
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  let digits = text.slice(sign.length);
  if (prefixes[base] && digits.startsWith(prefixes[base])) digits = digits.slice(2);
  digits = digits.replace(/(?<=[\da-z])_(?=[\da-z])/g, "");
  if (!(base >= 2 && base <= 36) || digits === "") return null;
  const allowed = "0123456789abcdefghijklmnopqrstuvwxyz".slice(0, base);
  if (![...digits].every((digit) => allowed.includes(digit))) return null;
  return (sign === "-" ? -1 : 1) * Number.parseInt(digits, base);
}

function parseFraction(text: string): number | null {
  const written = text.trim().toLowerCase();
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(written)) return Number(written);
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(written);
  if (!special) return null;
  return special[2] === "nan" ? Number.NaN : special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
