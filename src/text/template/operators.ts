// The operators whose meaning in Python differs from the library's: comparison by content, membership, joining anything
// as text, remainders with the sign of the divisor, and no adding of texts to other things.

import type { TemplateValue } from "./library.ts";
import { pythonStr } from "./python-format.ts";
import { booleanOf, integerOf, textOf } from "./values.ts";

/** null: the library's own meaning is right. */
export function applyOperator(operator: string, left: TemplateValue, right: TemplateValue): TemplateValue | null {
  switch (operator) {
    case "~":
      return textOf(pythonStr(left) + pythonStr(right));
    case "==":
    case "!=":
      return booleanOf(equal(left, right) === (operator === "=="));
    case "in":
    case "not in":
      return booleanOf(contains(right, left) === (operator === "in"));
    case "%":
      return left.type === "IntegerValue" && right.type === "IntegerValue"
        ? integerOf(remainder(left.value as number, right.value as number))
        : null;
    case "+":
      if ((left.type === "StringValue") === (right.type === "StringValue")) return null;
      throw new Error(`a ${left.type} and a ${right.type} cannot be added`);
    default:
      return null;
  }
}

function remainder(a: number, b: number): number {
  if (b === 0) throw new Error("nothing can be divided by zero");
  return ((a % b) + b) % b;
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

/** Python's in: an element of a list, a key of an object, a part of a string; nothing is in an undefined value. */
export function contains(container: TemplateValue, item: TemplateValue): boolean {
  const { value } = container;
  if (Array.isArray(value)) return value.some((element) => equal(element, item));
  if (value instanceof Map) return typeof item.value === "string" && value.has(item.value);
  if (typeof value === "string" && typeof item.value === "string") return value.includes(item.value);
  if (container.type === "UndefinedValue") return false;
  throw new Error(`a ${item.type} cannot be looked for in a ${container.type}`);
}

function isNumeric(value: TemplateValue): boolean {
  return value.type === "IntegerValue" || value.type === "FloatValue" || value.type === "BooleanValue";
}
