// Operators with Python's meaning: comparison by content, membership, joining anything as text, repeating texts and
// lists, printf-style %, remainders with the sign of the divisor, no division by zero, no adding of texts to other things.

import type { TemplateValue } from "./library.ts";
import { pythonStr } from "./python-format.ts";
import { percentFormat } from "./text-format.ts";
import { checkLength, escapeHtml } from "./text-functions.ts";
import { booleanOf, floatOf, integerOf, isMarkup, keyOf, listOf, markupOf, textOf, tupleOf } from "./values.ts";

export interface SizeLimits {
  /** Characters of one text. */
  maxText: number;
  /** Elements of one list. */
  maxItems: number;
}

/** null: the library's own meaning is right. */
export function applyOperator(
  operator: string,
  left: TemplateValue,
  right: TemplateValue,
  limits: SizeLimits,
): TemplateValue | null {
  switch (operator) {
    case "~":
      return textOf(pythonStr(left) + pythonStr(right));
    case "==":
    case "!=":
      return booleanOf(equal(left, right) === (operator === "=="));
    case "in":
    case "not in":
      return booleanOf(contains(right, left) === (operator === "in"));
    case "<":
      return booleanOf(compare(left, right) < 0);
    case "<=":
      return booleanOf(compare(left, right) <= 0);
    case ">":
      return booleanOf(compare(left, right) > 0);
    case ">=":
      return booleanOf(compare(left, right) >= 0);
  }
  if (isNumeric(left) && isNumeric(right)) return calculate(operator, left, right);
  if (operator === "%" && left.type === "StringValue") {
    return textOf(percentFormat(left.value as string, right, limits.maxText));
  }
  if (operator === "*" && right.type === "IntegerValue") return repeat(left, right.value as number, limits);
  if (operator === "*" && left.type === "IntegerValue") return repeat(right, left.value as number, limits);
  if (operator === "+" && left.type === "TupleValue" && right.type === "TupleValue") {
    return tupleOf([...(left.value as TemplateValue[]), ...(right.value as TemplateValue[])]);
  }
  if (operator === "+" && (isMarkup(left) || isMarkup(right)) && left.type === right.type) {
    return markupOf(escaped(left) + escaped(right));
  }
  if (operator !== "+" || left.type === right.type) return null;
  throw new Error(`a ${left.type} and a ${right.type} cannot be added`);
}

/** null: not an operator of numbers done here. */
function calculate(operator: string, left: TemplateValue, right: TemplateValue): TemplateValue | null {
  const [a, b] = [Number(left.value), Number(right.value)];
  const result = left.type === "FloatValue" || right.type === "FloatValue" ? floatOf : integerOf;
  if ((operator === "/" || operator === "//") && b === 0) throw new Error(BY_ZERO);
  if (operator === "+") return result(a + b);
  if (operator === "-") return result(a - b);
  if (operator === "*") return result(a * b);
  if (operator === "/") return floatOf(a / b);
  if (operator === "//") return result(Math.floor(a / b));
  if (operator === "%") return result(remainder(a, b));
  return null;
}

function escaped(text: TemplateValue): string {
  return isMarkup(text) ? (text.value as string) : escapeHtml(text.value as string);
}

const BY_ZERO = "nothing can be divided by zero";

/** With the sign of the divisor. */
export function remainder(a: number, b: number): number {
  if (b === 0) throw new Error(BY_ZERO);
  return ((a % b) + b) % b;
}

function repeat(value: TemplateValue, count: number, { maxText, maxItems }: SizeLimits): TemplateValue | null {
  const times = Math.max(0, count);
  if (typeof value.value === "string") {
    checkLength(value.value.length * times, maxText);
    return textOf(value.value.repeat(times));
  }
  if (!Array.isArray(value.value)) return null;
  const items = value.value as TemplateValue[];
  if (items.length * times > maxItems) throw new Error(`a list grew beyond ${maxItems} elements`);
  const repeated =
    items.length === 0 ? [] : Array.from({ length: items.length * times }, (_, i) => items[i % items.length]!);
  return value.type === "TupleValue" ? tupleOf(repeated) : listOf(repeated);
}

/** Python's ==: by content, numbers and booleans by value, never across other kinds. */
export function equal(left: TemplateValue, right: TemplateValue): boolean {
  const [a, b] = [left.value, right.value];
  if (isNumeric(left) && isNumeric(right)) return Number(a) === Number(b);
  if (left.type !== right.type) return false;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, value]) => b.has(key) && equal(value, b.get(key)));
  }
  return a === b;
}

/** Less than 0, 0 or more: numbers, texts, or lists element by element; nothing else has an order. */
export function compare(left: TemplateValue, right: TemplateValue): number {
  const [a, b] = [left.value, right.value];
  if (isNumeric(left) && isNumeric(right)) return Number(a) - Number(b);
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (Array.isArray(a) && Array.isArray(b) && left.type === right.type) {
    const differing = a.findIndex((item, i) => i >= b.length || !equal(item, b[i]));
    if (differing < 0) return a.length - b.length;
    return differing < b.length ? compare(a[differing], b[differing]) : 1;
  }
  throw new Error(`a ${left.type} and a ${right.type} have no order`);
}

/** Python's in: an element of a list, a key of an object, a part of a string; nothing is in an undefined value. */
export function contains(container: TemplateValue, item: TemplateValue): boolean {
  const { value } = container;
  if (Array.isArray(value)) return value.some((element) => equal(element, item));
  if (value instanceof Map) return value.has(keyOf(item));
  if (typeof value === "string" && typeof item.value === "string") return value.includes(item.value);
  if (container.type === "UndefinedValue") return false;
  throw new Error(`a ${item.type} cannot be looked for in a ${container.type}`);
}

function isNumeric(value: TemplateValue): boolean {
  return value.type === "IntegerValue" || value.type === "FloatValue" || value.type === "BooleanValue";
}
