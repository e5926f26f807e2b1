// Number and integer schemas: bounds, multiples and excluded values.

import { complementDfa, intersectDfas } from "../../char-dfa.ts";
import { determinise } from "../../determinise.ts";
import { choice, type Expression, isNever, optional, sequence, text } from "../../expression.ts";
import { Contradiction } from "../../grammar-error.ts";
import type { SchemaContext } from "../context.ts";
import { type Bound, type Conjunction, tighter } from "../logic/conjunction.ts";
import { numberBetween } from "./decimals.ts";
import { anyInteger, integerBetween } from "./integers.ts";
import { multiplesOf } from "./multiples.ts";
import { formatBounds } from "./number-formats.ts";

/** Beyond this, a double cannot tell neighbouring integers apart, so a reader might not see a multiple. */
const EXACT_LIMIT = 1e15;
/** Limits for numbers with several divisors. */
const MANY_REMAINDERS = 100;
const SHORT_LIMIT = 1e5;
/** The generated digits never reach a bound this far away. */
const FAR = 1e20;

export function compileNumber(context: SchemaContext, all: Conjunction, path: string): Expression {
  let low = near(all.low, all.high);
  let high = near(all.high, all.low);
  for (const [least, greatest] of all.formats.map(formatBounds)) {
    if (Number.isFinite(least)) low = tighter(low, { value: least, exclusive: false }, 1);
    if (Number.isFinite(greatest)) high = tighter(high, { value: greatest, exclusive: false }, -1);
  }
  const excluded = all.excluded.filter((value) => typeof value === "number").sort((a, b) => a - b);
  const options: Expression[] = [];
  // Excluded values cut the range into pieces.
  for (const [index, edge] of [...excluded, null].entries()) {
    const from = index === 0 ? low : tighter(low, { value: excluded[index - 1]!, exclusive: true }, 1);
    const to = edge === null ? high : tighter(high, { value: edge, exclusive: true }, -1);
    options.push(within(context, all, from, to, path));
  }
  const some = options.filter((option) => !isNever(option));
  return some.length === 0
    ? context.impossible("no number lies between the given minimum and maximum", path)
    : choice(...some);
}

/** Drops a bound that is too far away to matter, unless the other bound is just as far. */
function near(bound: Bound | null, other: Bound | null): Bound | null {
  const matters =
    bound === null || Math.abs(bound.value) < FAR || (other !== null && Math.abs(other.value) >= EXACT_LIMIT);
  return matters ? bound : null;
}

function within(
  context: SchemaContext,
  all: Conjunction,
  low: Bound | null,
  high: Bound | null,
  path: string,
): Expression {
  const json = context.text;
  const divisors = all.divisors.filter((divisor) => divisor !== 1);
  // A number that is no multiple of 3 is no multiple of 6 either.
  const notDivisors = all.notDivisors.filter(
    (one) => !all.notDivisors.some((other) => other < one && one % other === 0),
  );
  const integer = all.integer || all.divisors.some(Number.isInteger);
  try {
    if (divisors.length + notDivisors.length > 0) return multiples(divisors, notDivisors, integer, low, high, path);
    if (!integer) return low || high ? numberBetween(low, high) : json.number;
    const whole = low || high ? integerBetween(low, high) : json.builder.named("json integer", anyInteger);
    return context.cases.document.wholeFractions ? sequence(whole, optional(text(".0"))) : whole;
  } catch (error) {
    if (error instanceof Contradiction) return choice();
    throw error;
  }
}

function multiples(
  divisors: readonly number[],
  notDivisors: readonly number[],
  integer: boolean,
  low: Bound | null,
  high: Bound | null,
  path: string,
): Expression {
  if (notDivisors.some((one) => divisors.some((divisor) => divisor % one === 0))) return choice();
  // The automaton counts remainders of all of them. Where they are many, only short integers are generated.
  const all = [...divisors, ...notDivisors];
  const many = all.length > 1 && all.reduce((a, b) => a * b) > MANY_REMAINDERS;
  const reach = many ? SHORT_LIMIT : EXACT_LIMIT;
  const from = low ?? { value: Math.min(-reach, (high?.value ?? 0) - reach), exclusive: false };
  const to = high ?? { value: Math.max(reach, (low?.value ?? 0) + reach), exclusive: false };
  const subject = `"multipleOf" at ${path}`;
  let dfa = determinise(integer || many ? integerBetween(from, to) : numberBetween(low, high), subject);
  for (const divisor of divisors) dfa = intersectDfas(dfa, multiplesOf(divisor, path), subject);
  for (const divisor of notDivisors) dfa = intersectDfas(dfa, complementDfa(multiplesOf(divisor, path)), subject);
  return dfa.states.some((state) => state.final) ? { kind: "dfa", dfa, json: false } : choice();
}
