// Decimal texts of numbers within bounds, without exponents. A text has at most 15 significant digits. Doubles preserve
// the order of such numbers, so a reader that uses doubles sees a value on the same side of the bound.

import {
  charSet,
  choice,
  type Expression,
  empty,
  isNever,
  never,
  optional,
  repeat,
  sequence,
  text,
} from "../../expression.ts";
import type { Bound } from "../logic/conjunction.ts";
import { digit, emptyRange, naturalBetween } from "./integers.ts";

export function numberBetween(low: Bound | null, high: Bound | null): Expression {
  if (low && high && (low.value > high.value || (low.value === high.value && (low.exclusive || high.exclusive)))) {
    throw emptyRange();
  }
  const options: Expression[] = [];
  const negated = (bound: Bound): Bound => ({ value: -bound.value, exclusive: bound.exclusive });
  // "-0" is never written: zero belongs to the non-negative half.
  if (!low || low.value < 0) {
    const nearest: Bound = high && high.value < 0 ? negated(high) : { value: 0, exclusive: true };
    options.push(sequence(text("-"), magnitudeBetween(nearest, low && negated(low))));
  }
  if (!high || high.value > 0 || (high.value === 0 && !high.exclusive)) {
    options.push(
      magnitudeBetween(low && low.value > 0 ? low : { value: 0, exclusive: low?.value === 0 && low.exclusive }, high),
    );
  }
  return choice(...options);
}

/** A bound in decimal digits. The fraction has no trailing zeros. */
interface Edge {
  readonly integer: string;
  readonly fraction: string;
  readonly exclusive: boolean;
}

/** Digits before and after the point together. A number with more digits before the point may have one after it. */
const SIGNIFICANT = 15;

function placesAfter(integerDigits: number): number {
  return Math.max(1, SIGNIFICANT - integerDigits);
}

/** Non-negative decimals between the bounds. If high is null, up to 15 digits before the point. */
function magnitudeBetween(lowBound: Bound, highBound: Bound | null): Expression {
  const low = roundedUp(edgeOf(lowBound));
  const largest: Edge = {
    integer: "9".repeat(Math.max(SIGNIFICANT, low.integer.length)),
    fraction: "9",
    exclusive: false,
  };
  const high = highBound ? roundedDown(edgeOf(highBound)) : largest;
  const from = BigInt(low.integer);
  const to = BigInt(high.integer);
  const room = (edge: Edge): number => Math.max(placesAfter(edge.integer.length), edge.fraction.length + 1);
  const width = Math.max(room(low), room(high));
  if (from > to || (from === to && low.fraction.padEnd(width, "0") > high.fraction.padEnd(width, "0"))) return never;
  if (from === to) return sequence(text(low.integer), fractionBetween(low, high, width));
  const options = [
    sequence(text(low.integer), fractionAbove(low.fraction, low.exclusive, room(low))),
    sequence(text(high.integer), fractionBelow(high.fraction, high.exclusive, room(high))),
    ...anyBetween(from + 1n, to - 1n),
  ];
  return choice(...options.filter((option) => !isNever(option)));
}

/** Decimals whose integer part is between the bounds: one alternative per number of digits before the point. */
function anyBetween(from: bigint, to: bigint): Expression[] {
  const options: Expression[] = [];
  for (let digits = String(from).length; digits <= String(to).length && from <= to; digits++) {
    const least = digits === 1 ? 0n : 10n ** BigInt(digits - 1);
    const most = 10n ** BigInt(digits) - 1n;
    const integers = naturalBetween(from > least ? from : least, to < most ? to : most);
    options.push(sequence(integers, anyFraction(placesAfter(digits))));
  }
  return options;
}

/** Bounds with more decimal places than this are rounded inwards. */
const MAX_FRACTION = 12;

function roundedDown(edge: Edge): Edge {
  if (edge.fraction.length <= MAX_FRACTION) return edge;
  return { integer: edge.integer, fraction: edge.fraction.slice(0, MAX_FRACTION).replace(/0+$/, ""), exclusive: false };
}

function roundedUp(edge: Edge): Edge {
  if (edge.fraction.length <= MAX_FRACTION) return edge;
  const scaled = String(BigInt(edge.integer + edge.fraction.slice(0, MAX_FRACTION)) + 1n).padStart(
    MAX_FRACTION + 1,
    "0",
  );
  const integer = scaled.slice(0, -MAX_FRACTION);
  return { integer, fraction: scaled.slice(-MAX_FRACTION).replace(/0+$/, ""), exclusive: false };
}

function anyFraction(places: number): Expression {
  return optional(sequence(text("."), repeat(digit, 1, places)));
}

/** Fractions ".…" (or nothing) with a value of at least 0.bound. The bound has no trailing zeros. */
function fractionAbove(bound: string, exclusive: boolean, places: number): Expression {
  const digits = digitsAbove(bound, exclusive, places);
  const withPoint = sequence(text("."), digits);
  return bound === "" && !exclusive ? optional(withPoint) : withPoint;
}

function digitsAbove(bound: string, exclusive: boolean, places: number): Expression {
  if (places <= 0) return bound === "" && !exclusive ? empty : never;
  if (bound === "") {
    if (!exclusive) return repeat(digit, 1, places);
    const above = sequence(charSet([[0x31, 0x39]]), repeat(digit, 0, places - 1));
    return choice(above, sequence(text("0"), digitsAbove(bound, exclusive, places - 1)));
  }
  const first = Number(bound[0]);
  const options = [sequence(text(bound[0]!), digitsAboveRest(bound.slice(1), exclusive, places - 1))];
  if (first < 9) options.push(sequence(charSet([[0x31 + first, 0x39]]), repeat(digit, 0, places - 1)));
  return choice(...options);
}

/** At least one digit is already written, so the text may stop once the bound is reached. */
function digitsAboveRest(bound: string, exclusive: boolean, places: number): Expression {
  const more = digitsAbove(bound, exclusive, places);
  return bound === "" && !exclusive ? optional(more) : more;
}

function fractionBelow(bound: string, exclusive: boolean, places: number): Expression {
  if (bound === "") return exclusive ? never : optional(sequence(text("."), repeat(text("0"), 1, 2)));
  return optional(sequence(text("."), digitsBelow(bound, exclusive, places)));
}

/** One or more digits with a value of at most 0.bound. Stopping before the bound's last digit gives a smaller value. */
function digitsBelow(bound: string, exclusive: boolean, places: number): Expression {
  const first = Number(bound[0]);
  const rest = bound.slice(1);
  const options: Expression[] = [];
  if (first > 0) options.push(sequence(charSet([[0x30, 0x2f + first]]), repeat(digit, 0, places - 1)));
  if (rest !== "") options.push(sequence(text(bound[0]!), optional(digitsBelow(rest, exclusive, places - 1))));
  else if (!exclusive) options.push(sequence(text(bound[0]!), repeat(text("0"), 0, 2)));
  return choice(...options);
}

function fractionBetween(low: Edge, high: Edge, places: number): Expression {
  if (low.fraction === "" && !low.exclusive) return fractionBelow(high.fraction, high.exclusive, places);
  if (high.fraction === "") return never;
  return sequence(text("."), digitsBetween(low.fraction, low.exclusive, high.fraction, high.exclusive, places));
}

function digitsBetween(
  low: string,
  lowExclusive: boolean,
  high: string,
  highExclusive: boolean,
  places: number,
): Expression {
  const a = Number(low[0] ?? "0");
  const b = Number(high[0] ?? "0");
  if (a === b) {
    const restLow = low.slice(1);
    const restHigh = high.slice(1);
    const met = restLow === "" && !lowExclusive;
    const tail =
      restHigh === ""
        ? highExclusive
          ? never
          : repeat(text("0"), 0, 2)
        : met
          ? optional(digitsBelow(restHigh, highExclusive, places - 1))
          : digitsBetween(restLow, lowExclusive, restHigh, highExclusive, places - 1);
    return sequence(text(String(a)), restHigh === "" && !met ? never : tail);
  }
  const options = [sequence(text(String(a)), digitsAboveRest(low.slice(1), lowExclusive, places - 1))];
  if (b - a > 1) options.push(sequence(charSet([[0x31 + a, 0x2f + b]]), repeat(digit, 0, places - 1)));
  const rest = high.slice(1);
  if (rest !== "") options.push(sequence(text(String(b)), optional(digitsBelow(rest, highExclusive, places - 1))));
  else if (!highExclusive) options.push(sequence(text(String(b)), repeat(text("0"), 0, 2)));
  return choice(...options);
}

/** The shortest decimal form of a non-negative double. */
function edgeOf({ value, exclusive }: Bound): Edge {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const digits = mantissa.replace(".", "");
  const point = Number(exponent) + 1;
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0");
  const integer = padded.slice(0, Math.max(1, point)).replace(/^0+(?=\d)/, "");
  return { integer, fraction: padded.slice(Math.max(1, point)).replace(/0+$/, ""), exclusive };
}
