// Number and integer schemas: bounds, multiples and excluded values.

import { complementDfa, intersectDfas, MAX_STATES, otherThan } from "../../char-dfa.ts";
import { codePoints } from "../../code-points.ts";
import { determinise } from "../../determinise.ts";
import {
  type CharDfa,
  type CharEdge,
  choice,
  type Expression,
  isNever,
  optional,
  sequence,
  text,
  texts,
} from "../../expression.ts";
import { Contradiction } from "../../grammar-error.ts";
import type { SchemaContext } from "../context.ts";
import { schemaError } from "../keywords.ts";
import { type Bound, type Conjunction, tighter } from "../logic/conjunction.ts";
import { numberBetween } from "./decimals.ts";
import { anyInteger, emptyRange, formatBounds, integerBetween } from "./integers.ts";

// multipleOf: decimal texts whose value is a multiple of a divisor. Tracks the remainder digit by digit.

/** The automaton has a state for each remainder at each place after the point. */
const MAX_MULTIPLE_STATES = 6_000;
const MINUS = codePoints([[0x2d, 0x2d]]);
const POINT = codePoints([[0x2e, 0x2e]]);
const DIGITS = Array.from({ length: 10 }, (_, digit) => codePoints([[0x30 + digit, 0x30 + digit]]));

/** Multiples of the divisor, written without exponent. The divisor is `units` × 10^-`places`. */
function multiplesOf(divisor: number, path: string): CharDfa {
  const { units, places } = decimal(divisor);
  if (units * (places + 2) > MAX_MULTIPLE_STATES) {
    throw schemaError(`the schema keyword "multipleOf" is not supported for ${divisor}: it has too many digits`, path);
  }
  // States: 0 start, 1 after the sign, then the remainders of each row, and finally trailing zeros.
  const at = (remainder: number, row: number): number => 2 + row * units + remainder;
  const zeros = at(0, places + 2);
  const digits = (remainder: number, row: number): CharEdge[] =>
    DIGITS.map((set, digit) => ({ set, target: at((remainder * 10 + digit) % units, row) }));
  const states = [
    { final: false, edges: [{ set: MINUS, target: 1 }, ...digits(0, 0)] },
    { final: false, edges: digits(0, 0) },
  ];
  // Row 0 is before the point, row 1 right after it, row n + 1 after n places.
  for (let row = 0; row <= places + 1; row++) {
    const missing = row === 0 ? places : places - (row - 1);
    const scale = 10 ** missing % units;
    for (let remainder = 0; remainder < units; remainder++) {
      const whole = (remainder * scale) % units === 0;
      const edges: CharEdge[] = [];
      if (row === 0) edges.push(...digits(remainder, 0), { set: POINT, target: at(remainder, 1) });
      else if (row <= places) edges.push(...digits(remainder, row + 1));
      else if (whole) edges.push({ set: DIGITS[0]!, target: zeros });
      states.push({ final: whole && row !== 1, edges });
    }
  }
  states.push({ final: true, edges: [{ set: DIGITS[0]!, target: zeros }] });
  return { states };
}

/** Exactly: 19.99 is a multiple of 0.01. */
export function isMultiple(value: number, divisor: number): boolean {
  if (value === 0) return true;
  const [a, b] = [decimal(Math.abs(value)), decimal(divisor)];
  const places = Math.max(a.places, b.places);
  return scaled(a, places) % scaled(b, places) === 0n;
}

function scaled({ units, places }: { units: number; places: number }, to: number): bigint {
  return BigInt(units) * 10n ** BigInt(to - places);
}

function decimal(divisor: number): { units: number; places: number } {
  const [mantissa, exponent] = divisor.toExponential().split("e") as [string, string];
  const digits = mantissa.replace(".", "");
  const places = digits.length - 1 - Number(exponent);
  return places >= 0 ? { units: Number(digits), places } : { units: Number(digits + "0".repeat(-places)), places: 0 };
}

/** Beyond this, a double cannot tell neighbouring integers apart, so a reader might not see a multiple. */
const EXACT_LIMIT = 1e15;
/** With more remainders than these, only integers up to the limit are generated. */
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
    (one) => !all.notDivisors.some((other) => other < one && isMultiple(one, other)),
  );
  const integer = all.integer || all.divisors.some(Number.isInteger);
  try {
    if (notDivisors.length === 0 && divisors.length > 0 && divisors.every(Number.isInteger)) {
      return integerMultiples(divisors, low, high, path);
    }
    if (divisors.length + notDivisors.length > 0) return multiples(divisors, notDivisors, integer, low, high, path);
    if (!integer) return low || high ? numberBetween(low, high) : json.number;
    const whole = low || high ? integerBetween(low, high) : json.builder.named("json integer", anyInteger);
    return context.cases.document.wholeFractions ? sequence(whole, optional(text(".0"))) : whole;
  } catch (error) {
    if (error instanceof Contradiction) return choice();
    throw error;
  }
}

/** Multiples that are listed one by one, where an automaton of remainders would be too large or is not worth it. */
const MAX_LISTED = 1_000n;
/** Remainders of one automaton. It has states for each of them at each digit. */
const MAX_REMAINDERS = 2_000n;

/**
 * Multiples of all these integers. Their common zeros at the end are split off, so that 86,400 needs the remainders of 864.
 * A divisor with too many remainders has its multiples next to zero, or next to the bound that is closer to zero.
 */
function integerMultiples(
  divisors: readonly number[],
  low: Bound | null,
  high: Bound | null,
  path: string,
): Expression {
  const divisor = divisors.map(BigInt).reduce(leastCommonMultiple);
  const first = low && ceiling(low, divisor);
  const last = high && -ceiling({ value: -high.value, exclusive: high.exclusive }, divisor);
  if (first !== null && last !== null && first > last) throw emptyRange();
  if (first !== null && last !== null && last - first < MAX_LISTED) return listedMultiples(divisor, first, last);
  let [core, zeros] = [divisor, 0];
  for (; core % 10n === 0n; core /= 10n) zeros++;
  const digits = core > MAX_REMAINDERS ? 0 : Math.min(15 - zeros, Math.floor(MAX_STATES / 3 / Number(core)));
  // All nines make the smallest automaton.
  const reach = 10n ** BigInt(digits) - 1n;
  const from = first === null ? least(-reach, (last ?? 0n) * core - reach) : first * core;
  const to = last === null ? greatest(reach, (first ?? 0n) * core + reach) : last * core;
  const subject = `"multipleOf" at ${path}`;
  const bound = (value: bigint): Bound => ({ value: Number(value), exclusive: false });
  const whole = determinise(integerBetween(bound(from), bound(to)), subject);
  if (reach / core < MAX_LISTED || whole.states.length * Number(core) > MAX_STATES) {
    const nearest =
      first !== null && first > 0n ? first : last !== null && last < 0n ? last - MAX_LISTED + 1n : -MAX_LISTED / 2n;
    const begin = first === null ? nearest : greatest(first, nearest);
    const end = begin + MAX_LISTED - 1n;
    return listedMultiples(divisor, begin, last === null ? end : least(end, last));
  }
  const dfa = intersectDfas(whole, multiplesOf(Number(core), path), subject);
  if (zeros === 0) return { kind: "dfa", dfa, json: false };
  const others = intersectDfas(dfa, otherThan(["0"]), subject);
  const tens = sequence({ kind: "dfa", dfa: others, json: false }, text("0".repeat(zeros)));
  return from <= 0n && to >= 0n ? choice(text("0"), tens) : tens;
}

function listedMultiples(divisor: bigint, first: bigint, last: bigint): Expression {
  return texts(
    Array.from({ length: Number(last - first) + 1 }, (_, index) => String((first + BigInt(index)) * divisor)),
  );
}

/** The least k for which k × divisor reaches the bound. */
function ceiling({ value, exclusive }: Bound, divisor: bigint): bigint {
  const whole = BigInt(Math.ceil(value));
  const reached = exclusive && Number.isInteger(value) ? whole + 1n : whole;
  const quotient = reached / divisor;
  return quotient * divisor < reached ? quotient + 1n : quotient;
}

function leastCommonMultiple(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return (a / x) * b;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function greatest(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function multiples(
  divisors: readonly number[],
  notDivisors: readonly number[],
  integer: boolean,
  low: Bound | null,
  high: Bound | null,
  path: string,
): Expression {
  if (notDivisors.some((one) => divisors.some((divisor) => isMultiple(divisor, one)))) return choice();
  // The automaton counts remainders of all of them. Where they are many, only short integers are generated.
  const all = [...divisors, ...notDivisors];
  const many = all.reduce((a, b) => a * b) > MANY_REMAINDERS;
  const reach = many ? SHORT_LIMIT : EXACT_LIMIT;
  const from = low ?? { value: Math.min(-reach, (high?.value ?? 0) - reach), exclusive: false };
  const to = high ?? { value: Math.max(reach, (low?.value ?? 0) + reach), exclusive: false };
  const subject = `"multipleOf" at ${path}`;
  let dfa = determinise(integer || many ? integerBetween(from, to) : numberBetween(low, high), subject);
  for (const divisor of divisors) dfa = intersectDfas(dfa, multiplesOf(divisor, path), subject);
  for (const divisor of notDivisors) dfa = intersectDfas(dfa, complementDfa(multiplesOf(divisor, path)), subject);
  return dfa.states.some((state) => state.final) ? { kind: "dfa", dfa, json: false } : choice();
}
