// Filters that make numbers: int and float as Python reads them, round as Python rounds.

import { builtins, integer, integerOr } from "./builtins.ts";
import { isNumeric } from "./comparison.ts";
import { fixedPoint } from "./python-format.ts";
import { typeName, type Value } from "./values.ts";

export const NUMBER_FILTERS = builtins<Value>({
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
