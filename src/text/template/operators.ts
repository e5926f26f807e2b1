// Operators with Python's meaning. An operation that would make a text, a list or a number too large is refused.

import { isInteger, isNumeric, type Numeric } from "./comparison.ts";
import { pythonJson } from "./python-format.ts";
import type { BinaryOperator } from "./syntax.ts";
import { percentFormat } from "./text-format.ts";
import { checkLength, escapeHtml } from "./text-functions.ts";
import { type Limits, Markup, positioned, ToolArguments, Tuple, typeName, type Value } from "./values.ts";

/** Numbers up to here can be printed in 4,300 digits, Python's limit. */
const LARGEST_INTEGER = 2n ** 14_000n;

export function binary(operator: BinaryOperator, left: Value, right: Value, limits: Limits): Value {
  if (isNumeric(left) && isNumeric(right)) return calculate(operator, left, right);
  if (operator === "%" && typeof left === "string") return percentFormat(left, right, limits.maxText);
  if (operator === "*") {
    const result = isInteger(right)
      ? repeat(left, right, limits)
      : isInteger(left)
        ? repeat(right, left, limits)
        : undefined;
    if (result !== undefined) return result;
  }
  if (operator === "+") {
    const sum = add(left, right, limits);
    if (sum !== undefined) return sum;
  }
  throw new Error(`unsupported operand types for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

function add(left: Value, right: Value, limits: Limits): Value {
  const [a, b] = [textToAdd(left, right), textToAdd(right, left)];
  if (a !== null && b !== null) {
    checkLength(a.length + b.length, limits.maxText);
    return left instanceof Markup || right instanceof Markup ? new Markup(a + b) : a + b;
  }
  if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
  return left instanceof Tuple && right instanceof Tuple ? new Tuple([...left.items, ...right.items]) : undefined;
}

/** The text of a value as one side of a sum of texts; null if it has none. */
function textToAdd(value: Value, other: Value): string | null {
  if (value instanceof Markup) return value.text;
  if (typeof value === "string") return other instanceof Markup ? escapeHtml(value) : value;
  return value instanceof ToolArguments && typeof other === "string" ? pythonJson(value) : null;
}

function repeat(value: Value, times: bigint | boolean, { maxText, maxItems }: Limits): Value {
  const count = Math.max(0, Number(times));
  if (typeof value === "string") {
    checkLength(value.length * count, maxText);
    return value.repeat(count);
  }
  if (!Array.isArray(value) && !(value instanceof Tuple)) return undefined;
  const items = positioned(value) ?? [];
  const length = items.length * count;
  if (length > maxItems) throw new Error(`a list grew beyond ${maxItems} elements`);
  const repeated = Array.from({ length: items.length === 0 ? 0 : length }, (_, i) => items[i % items.length]);
  return value instanceof Tuple ? new Tuple(repeated) : repeated;
}

function calculate(operator: BinaryOperator, left: Numeric, right: Numeric): Value {
  if ((operator === "/" || operator === "//" || operator === "%") && Number(right) === 0) {
    throw new Error("division by zero");
  }
  const isWhole = typeof left !== "number" && typeof right !== "number";
  if (isWhole && operator === "**" && Number(right) < 0) return 1 / Number(left) ** -Number(right);
  if (!isWhole || operator === "/") return FLOATS[operator](Number(left), Number(right));
  const result = INTEGERS[operator](BigInt(left), BigInt(right));
  if (result > LARGEST_INTEGER || result < -LARGEST_INTEGER) throw new Error("a number grew too large");
  return result;
}

const FLOATS: Readonly<Record<BinaryOperator, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  // The remainder has the sign of the divisor.
  "%": (a, b) => (a % b !== 0 && a % b < 0 !== b < 0 ? (a % b) + b : a % b),
  "**": (a, b) => {
    if (a < 0 && !Number.isInteger(b)) throw new Error("a complex number has no place in a template");
    return a ** b;
  },
};

const INTEGERS: Readonly<Record<Exclude<BinaryOperator, "/">, (a: bigint, b: bigint) => bigint>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "//": (a, b) => a / b - (isBelow(a, b) ? 1n : 0n),
  "%": (a, b) => (a % b) + (isBelow(a, b) ? b : 0n),
  "**": (a, b) => {
    const isHuge = a.toString(16).length * 4 * Number(b) > 15_000 && a !== 1n && a !== 0n;
    if (isHuge) throw new Error("a number grew too large");
    return a ** b;
  },
};

/** Whether the quotient is not whole and below zero: Python rounds it down, JavaScript towards zero. */
function isBelow(a: bigint, b: bigint): boolean {
  return a % b !== 0n && a % b < 0n !== b < 0n;
}
