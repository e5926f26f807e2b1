// Decimal texts of numbers within bounds, without exponents. Digits are limited so that a reader that uses doubles gets the
// value that was checked: next to a bound at most about 15 significant digits.

import { charSet, choice, type Expression, empty, never, optional, repeat, sequence, text } from "../expression.ts";
import { type Bound, digit, emptyRange, FREE_FRACTION_DIGITS, naturalBetween } from "./numbers.ts";

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

/** A bound in decimal digits; the fraction has no trailing zeros. */
interface Edge {
  readonly integer: string;
  readonly fraction: string;
  readonly exclusive: boolean;
}

/** Non-negative decimals between the bounds; high null = up to 15 digits before the point. */
function magnitudeBetween(lowBound: Bound, highBound: Bound | null): Expression {
  const low = roundedUp(edgeOf(lowBound));
  const largest: Edge = { integer: "9".repeat(Math.max(15, low.integer.length)), fraction: "9", exclusive: false };
  const high = highBound ? roundedDown(edgeOf(highBound)) : largest;
  const from = BigInt(low.integer);
  const to = BigInt(high.integer);
  const places = Math.min(FREE_FRACTION_DIGITS, Math.max(1, 15 - high.integer.length));
  const room = Math.max(places, low.fraction.length + 1, high.fraction.length + 1);
  if (from > to || (from === to && low.fraction.padEnd(room, "0") > high.fraction.padEnd(room, "0"))) return never;
  if (from === to) return sequence(text(low.integer), fractionBetween(low, high, room));
  const options = [
    sequence(text(low.integer), fractionAbove(low.fraction, low.exclusive, room)),
    sequence(text(high.integer), fractionBelow(high.fraction, high.exclusive, room)),
  ];
  if (to - from > 1n) options.push(sequence(naturalBetween(from + 1n, to - 1n), anyFraction(places)));
  return choice(...options);
}

/** Bounds with more digits than are ever generated move inwards to the last digit that is. */
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

/** ".…" texts (or nothing) whose value is at least 0.bound. The bound has no trailing zeros. */
function fractionAbove(bound: string, exclusive: boolean, places: number): Expression {
  const digits = digitsAbove(bound, exclusive, places);
  const withPoint = sequence(text("."), digits);
  return bound === "" && !exclusive ? optional(withPoint) : withPoint;
}

function digitsAbove(bound: string, exclusive: boolean, places: number): Expression {
  if (places <= 0) return bound === "" && !exclusive ? empty : never;
  if (bound === "") {
    const some = exclusive ? sequence(repeat(text("0"), 0, places - 1), charSet([[0x31, 0x39]])) : digit;
    return sequence(some, repeat(digit, 0, exclusive ? 2 : places - 1));
  }
  const first = Number(bound[0]);
  const options = [sequence(text(bound[0]!), digitsAboveRest(bound.slice(1), exclusive, places - 1))];
  if (first < 9) options.push(sequence(charSet([[0x31 + first, 0x39]]), repeat(digit, 0, places - 1)));
  return choice(...options);
}

/** After at least one digit was written, stopping is possible when nothing is missing. */
function digitsAboveRest(bound: string, exclusive: boolean, places: number): Expression {
  const more = digitsAbove(bound, exclusive, places);
  return bound === "" && !exclusive ? optional(more) : more;
}

function fractionBelow(bound: string, exclusive: boolean, places: number): Expression {
  if (bound === "") return exclusive ? never : optional(sequence(text("."), repeat(text("0"), 1, 2)));
  return optional(sequence(text("."), digitsBelow(bound, exclusive, places)));
}

/** One or more digits whose value is at most 0.bound; a bound that is not used up means less. */
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
