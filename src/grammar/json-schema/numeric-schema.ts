// Number and integer schemas: bounds and multiples.

import { determinise, intersectDfas, multiplesOf } from "../char-dfa.ts";
import type { Expression } from "../expression.ts";
import { numberBetween } from "./decimals.ts";
import type { JsonText } from "./json-text.ts";
import { type SchemaObject, schemaError } from "./keywords.ts";
import { anyInteger, type Bound, integerBetween } from "./numbers.ts";

const maxDivisor = 1000;
/** Beyond this a double no longer tells neighbouring integers apart, and a multiple could be read as something else. */
const exactLimit = 1e15;

export function compileNumber(
  json: JsonText,
  schema: SchemaObject,
  type: "integer" | "number",
  path: string,
): Expression {
  const low = tighter(schema.minimum as number | undefined, schema.exclusiveMinimum as number | undefined, Math.max);
  const high = tighter(schema.maximum as number | undefined, schema.exclusiveMaximum as number | undefined, Math.min);
  const divisor = schema.multipleOf as number | undefined;
  if (divisor !== undefined && divisor !== 1) return multiples(divisor, low, high, path);
  if (type === "integer" || divisor === 1) {
    return low || high ? integerBetween(low, high) : json.builder.named("json integer", anyInteger);
  }
  return low || high ? numberBetween(low, high) : json.number;
}

function multiples(divisor: number, low: Bound | null, high: Bound | null, path: string): Expression {
  if (!Number.isInteger(divisor) || divisor > maxDivisor) {
    throw schemaError(`the schema keyword "multipleOf" is only supported for integers up to ${maxDivisor}`, path);
  }
  const from = low ?? { value: Math.min(-exactLimit, (high?.value ?? 0) - exactLimit), exclusive: false };
  const to = high ?? { value: Math.max(exactLimit, (low?.value ?? 0) + exactLimit), exclusive: false };
  const subject = `"multipleOf" at ${path}`;
  const range = determinise(integerBetween(from, to), subject);
  return { kind: "dfa", dfa: intersectDfas(range, multiplesOf(divisor), subject), json: false };
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
