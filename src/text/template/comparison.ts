// Comparisons with Python's meaning: equality by content, order, membership.

import type { Comparison } from "./syntax.ts";
import { elements, findKey, positioned, typeName, type Value } from "./values.ts";

export type Numeric = bigint | number | boolean;

const COMPARISONS: Readonly<Record<Comparison, (left: Value, right: Value) => boolean>> = {
  "==": equal,
  "!=": (left, right) => !equal(left, right),
  in: (left, right) => contains(right, left),
  "not in": (left, right) => !contains(right, left),
  "<": (left, right) => compare(left, right) < 0,
  "<=": (left, right) => compare(left, right) <= 0,
  ">": (left, right) => compare(left, right) > 0,
  ">=": (left, right) => compare(left, right) >= 0,
};

export function compareWith(operator: Comparison, left: Value, right: Value): boolean {
  return COMPARISONS[operator](left, right);
}

/** Python's ==: by content, numbers and booleans by value, never across other types. */
export function equal(left: Value, right: Value): boolean {
  if (isNumeric(left) && isNumeric(right)) {
    return typeof left === "bigint" && typeof right === "bigint" ? left === right : Number(left) === Number(right);
  }
  if (left instanceof Map && right instanceof Map) {
    return (
      left.size === right.size && [...left].every(([key, value]) => right.has(key) && equal(value, right.get(key)))
    );
  }
  const [a, b] = [positioned(left), positioned(right)];
  if (a === null || b === null) return left === right;
  if (typeName(left) !== typeName(right) || a.length !== b.length) return false;
  return a.every((item, i) => equal(item, b[i]));
}

/** Less than 0, 0 or more: numbers, texts, or lists element by element; nothing else has an order. */
export function compare(left: Value, right: Value): number {
  if (isNumeric(left) && isNumeric(right)) return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === "string" && typeof right === "string") return left < right ? -1 : left > right ? 1 : 0;
  const [a, b] = [positioned(left), positioned(right)];
  if (a === null || b === null || typeName(left) !== typeName(right)) {
    throw new Error(`'${typeName(left)}' and '${typeName(right)}' have no order`);
  }
  const differing = a.findIndex((item, i) => i >= b.length || !equal(item, b[i]));
  if (differing < 0) return a.length - b.length;
  return differing < b.length ? compare(a[differing], b[differing]) : 1;
}

/** Python's in: an element of a list, a key of a dict, a part of a text; nothing is in an undefined value. */
export function contains(container: Value, item: Value): boolean {
  if (typeof container === "string") {
    if (typeof item === "string") return container.includes(item);
    throw new Error(`'in <string>' needs a string on its left, not '${typeName(item)}'`);
  }
  if (container instanceof Map) return item !== undefined && container.has(findKey(container, item));
  return elements(container).some((element) => equal(element, item));
}

export function isNumeric(value: Value): value is Numeric {
  return typeof value === "bigint" || typeof value === "number" || typeof value === "boolean";
}

export function isInteger(value: Value): value is bigint | boolean {
  return typeof value === "bigint" || typeof value === "boolean";
}
