// What stands behind "is", as Jinja defines it.

import type { TemplateValue } from "./library.ts";
import { compare, contains, equal, remainder } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import { isIterable, nothing } from "./values.ts";

type Test = (value: TemplateValue, other: TemplateValue) => boolean;

const equalTo: Test = (value, other) => equal(value, other);
const unequalTo: Test = (value, other) => !equal(value, other);
const less: Test = (value, other) => compare(value, other) < 0;
const lessOrEqual: Test = (value, other) => compare(value, other) <= 0;
const greater: Test = (value, other) => compare(value, other) > 0;
const greaterOrEqual: Test = (value, other) => compare(value, other) >= 0;
const isOf =
  (...types: string[]): Test =>
  ({ type }) =>
    types.includes(type);

const tests: Readonly<Record<string, Test>> = {
  defined: ({ type }) => type !== "UndefinedValue",
  undefined: isOf("UndefinedValue"),
  none: isOf("NullValue"),
  true: ({ value }) => value === true,
  false: ({ value }) => value === false,
  boolean: isOf("BooleanValue"),
  integer: isOf("IntegerValue"),
  float: isOf("FloatValue"),
  number: isOf("IntegerValue", "FloatValue", "BooleanValue"),
  string: isOf("StringValue"),
  mapping: isOf("ObjectValue", "KeywordArgumentsValue"),
  sequence: ({ type, value }) => type !== "NamespaceValue" && isIterable({ type, value }),
  iterable: isIterable,
  callable: isOf("FunctionValue"),
  odd: ({ value }) => divided(value, 2) === 1,
  even: ({ value }) => divided(value, 2) === 0,
  divisibleby: ({ value }, other) => divided(value, other.value) === 0,
  lower: (value) => isCased(pythonStr(value), (text) => text.toLowerCase()),
  upper: (value) => isCased(pythonStr(value), (text) => text.toUpperCase()),
  // Objects and lists by identity, as in Python; the small values a template can compare so are equal ones.
  sameas: (value, other) =>
    value.type === other.type && (typeof value.value === "object" ? value.value === other.value : equal(value, other)),
  in: (value, other) => contains(other, value),
  eq: equalTo,
  equalto: equalTo,
  "==": equalTo,
  ne: unequalTo,
  "!=": unequalTo,
  lt: less,
  lessthan: less,
  "<": less,
  le: lessOrEqual,
  "<=": lessOrEqual,
  gt: greater,
  greaterthan: greater,
  ">": greater,
  ge: greaterOrEqual,
  ">=": greaterOrEqual,
};

export function passesTest(name: string, value: TemplateValue, other: TemplateValue = nothing): boolean {
  if (!Object.hasOwn(tests, name)) throw new Error(`unknown test '${name}'`);
  return tests[name]!(value, other);
}

function divided(value: unknown, divisor: unknown): number {
  if (typeof value !== "number" || typeof divisor !== "number") throw new Error("only numbers can be divided");
  return remainder(value, divisor);
}

/** As str.islower() and str.isupper(): something in it has a case, and all of it this one. */
function isCased(text: string, convert: (text: string) => string): boolean {
  return text === convert(text) && text.toLowerCase() !== text.toUpperCase();
}
