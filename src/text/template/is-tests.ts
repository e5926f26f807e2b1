// The tests behind `is`, as Jinja defines them.

import { compareWith, equal, isNumeric } from "./comparison.ts";
import { binary } from "./operators.ts";
import { pythonStr } from "./python-format.ts";
import type { Comparison } from "./syntax.ts";
import { elementsOrNull, Instance, Once, positioned, type Runtime, type Value } from "./values.ts";

type Test = (value: Value, other: Value, runtime: Runtime) => boolean;

const comparing =
  (operator: Comparison): Test =>
  (value, other) =>
    compareWith(operator, value, other);
const remainder = (value: Value, divisor: Value, { limits }: Runtime): Value => binary("%", value, divisor, limits);
const isIterable: Test = (value) => value instanceof Once || elementsOrNull(value) !== null;

const TESTS: ReadonlyMap<string, Test> = new Map([
  ["defined", (value) => value !== undefined],
  ["undefined", (value) => value === undefined],
  ["none", (value) => value === null],
  ["true", (value) => value === true],
  ["false", (value) => value === false],
  ["boolean", (value) => typeof value === "boolean"],
  ["integer", (value) => typeof value === "bigint"],
  ["float", (value) => typeof value === "number"],
  ["number", (value) => isNumeric(value)],
  ["string", (value) => typeof value === "string"],
  ["mapping", (value) => value instanceof Map],
  [
    "sequence",
    (value) => value === undefined || typeof value === "string" || value instanceof Map || positioned(value) !== null,
  ],
  ["iterable", isIterable],
  ["callable", (value) => value === undefined || typeof value === "function" || value instanceof Instance],
  ["odd", (value, _other, runtime) => equal(remainder(value, 2n, runtime), 1n)],
  ["even", (value, _other, runtime) => equal(remainder(value, 2n, runtime), 0n)],
  ["divisibleby", (value, other, runtime) => equal(remainder(value, other, runtime), 0n)],
  ["lower", (value) => isCased(pythonStr(value), (text) => text.toLowerCase())],
  ["upper", (value) => isCased(pythonStr(value), (text) => text.toUpperCase())],
  ["sameas", (value, other) => value === other],
  ["in", comparing("in")],
  ...(["==", "eq", "equalto"] as const).map((name) => [name, comparing("==")] as const),
  ...(["!=", "ne"] as const).map((name) => [name, comparing("!=")] as const),
  ...(["<", "lt", "lessthan"] as const).map((name) => [name, comparing("<")] as const),
  ...(["<=", "le"] as const).map((name) => [name, comparing("<=")] as const),
  ...([">", "gt", "greaterthan"] as const).map((name) => [name, comparing(">")] as const),
  ...([">=", "ge"] as const).map((name) => [name, comparing(">=")] as const),
]);

export function passesTest(name: string, value: Value, other: Value, runtime: Runtime): boolean {
  const test = TESTS.get(name);
  if (!test) throw new Error(`unknown test '${name}'`);
  return test(value, other, runtime);
}

/** As str.islower() and str.isupper(): something in it has a case, and all of it this one. */
function isCased(text: string, convert: (text: string) => string): boolean {
  return text === convert(text) && text.toLowerCase() !== text.toUpperCase();
}
