// Number and integer schemas: bounds and multiples.

import { determinise, intersectDfas, multiplesOf } from "../char-dfa.ts";
import type { Expression } from "../expression.ts";
import { numberBetween } from "./decimals.ts";
import type { JsonText } from "./json-text.ts";
import { type SchemaObject, schemaError } from "./keywords.ts";
import { anyInteger, type Bound, integerBetween } from "./numbers.ts";

const MAX_DIVISOR = 1000;
/** Beyond this a double no longer tells neighbouring integers apart, and a multiple could be read as something else. */
const EXACT_LIMIT = 1e15;

/** Formats of OpenAPI that are bounds. The others hold whatever is generated: at most 18 digits, 15 before a point. */
const WIDTHS = new Map<unknown, readonly [least: number, greatest: number]>([
  ...[8, 16, 32].map((bits) => [`int${bits}`, [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]] as const),
  ...[8, 16, 32].map((bits) => [`uint${bits}`, [0, 2 ** bits - 1]] as const),
  ["uint", [0, Number.POSITIVE_INFINITY]],
  ["uint64", [0, Number.POSITIVE_INFINITY]],
]);

/** What the format of a number demands. */
export function formatBounds(format: unknown): readonly [least: number, greatest: number] {
  return WIDTHS.get(format) ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
}

export function compileNumber(
  json: JsonText,
  schema: SchemaObject,
  type: "integer" | "number",
  path: string,
): Expression {
  const [least, greatest] = formatBounds(schema.format);
  const minimum = Math.max(least, (schema.minimum ?? Number.NEGATIVE_INFINITY) as number);
  const maximum = Math.min(greatest, (schema.maximum ?? Number.POSITIVE_INFINITY) as number);
  const low = tighter(finite(minimum), schema.exclusiveMinimum as number | undefined, Math.max);
  const high = tighter(finite(maximum), schema.exclusiveMaximum as number | undefined, Math.min);
  const divisor = schema.multipleOf as number | undefined;
  if (divisor !== undefined && divisor !== 1) return multiples(divisor, low, high, path);
  if (type === "integer" || divisor === 1) {
    return low || high ? integerBetween(low, high) : json.builder.named("json integer", anyInteger);
  }
  return low || high ? numberBetween(low, high) : json.number;
}

function multiples(divisor: number, low: Bound | null, high: Bound | null, path: string): Expression {
  if (!Number.isInteger(divisor) || divisor > MAX_DIVISOR) {
    throw schemaError(`the schema keyword "multipleOf" is only supported for integers up to ${MAX_DIVISOR}`, path);
  }
  const from = low ?? { value: Math.min(-EXACT_LIMIT, (high?.value ?? 0) - EXACT_LIMIT), exclusive: false };
  const to = high ?? { value: Math.max(EXACT_LIMIT, (low?.value ?? 0) + EXACT_LIMIT), exclusive: false };
  const subject = `"multipleOf" at ${path}`;
  const range = determinise(integerBetween(from, to), subject);
  return { kind: "dfa", dfa: intersectDfas(range, multiplesOf(divisor), subject), json: false };
}

function finite(bound: number): number | undefined {
  return Number.isFinite(bound) ? bound : undefined;
}

function tighter(
  inclusive: number | undefined,
  exclusive: number | undefined,
  stricter: (a: number, b: number) => number,
): Bound | null {
  if (inclusive === undefined && exclusive === undefined) return null;
  if (exclusive === undefined) return { value: inclusive!, exclusive: false };
  if (inclusive === undefined) return { value: exclusive, exclusive: true };
  const value = stricter(inclusive, exclusive);
  return { value, exclusive: value === exclusive };
}
