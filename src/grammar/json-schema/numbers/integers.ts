// Decimal texts of integers within bounds, and of unbounded numbers. The digit limit makes every number end.
import { charSet, choice, type Expression, optional, repeat, sequence, text, texts } from "../../expression.ts";
import { Contradiction } from "../../grammar-error.ts";
import type { Bound } from "../logic/conjunction.ts";

/** Maximum digits of an unbounded integer. Covers nearly all of int64's range. */
const FREE_INTEGER_DIGITS = 18;
const FREE_FRACTION_DIGITS = 17;

export const digit: Expression = charSet([[0x30, 0x39]]);

export function anyInteger(): Expression {
  const magnitude = sequence(charSet([[0x31, 0x39]]), repeat(digit, 0, FREE_INTEGER_DIGITS - 1));
  return choice(text("0"), sequence(optional(text("-")), magnitude));
}

export function anyNumber(): Expression {
  const fraction = sequence(text("."), repeat(digit, 1, FREE_FRACTION_DIGITS));
  const magnitude = choice(text("0"), sequence(charSet([[0x31, 0x39]]), repeat(digit, 0, 14)));
  const exponent = sequence(texts(["e", "E"]), optional(texts(["+", "-"])), repeat(digit, 1, 2));
  return sequence(optional(text("-")), magnitude, optional(fraction), optional(exponent));
}

export function integerBetween(low: Bound | null, high: Bound | null): Expression {
  const min = low && exactInteger(low, 1n);
  const max = high && exactInteger(high, -1n);
  if (min !== null && max !== null && min > max) throw emptyRange();
  const furthest = (bound: bigint): bigint => {
    const size = bound < 0n ? -bound : bound;
    return size * 10n > 10n ** BigInt(FREE_INTEGER_DIGITS) ? size * 10n : 10n ** BigInt(FREE_INTEGER_DIGITS) - 1n;
  };
  const from = min ?? -furthest(max!);
  const to = max ?? furthest(min!);
  const options: Expression[] = [];
  if (from < 0n) options.push(sequence(text("-"), naturalBetween(to < 0n ? -to : 1n, -from)));
  if (to >= 0n) options.push(naturalBetween(from > 0n ? from : 0n, to));
  return choice(...options);
}

/** Natural numbers from low to high, without leading zeros. */
export function naturalBetween(low: bigint, high: bigint): Expression {
  const options: Expression[] = [];
  for (let length = String(low).length; length <= String(high).length; length++) {
    const smallest = length === 1 ? 0n : 10n ** BigInt(length - 1);
    const largest = 10n ** BigInt(length) - 1n;
    const from = String(low > smallest ? low : smallest);
    const to = String(high < largest ? high : largest);
    options.push(sameLength(from, to));
  }
  return choice(...options);
}

function sameLength(low: string, high: string): Expression {
  if (low === high) return text(low);
  if (/^0*$/.test(low) && /^9*$/.test(high)) return repeat(digit, low.length, low.length);
  const [a, b] = [Number(low[0]), Number(high[0])];
  const [restLow, restHigh] = [low.slice(1), high.slice(1)];
  const nines = "9".repeat(restLow.length);
  const zeros = "0".repeat(restLow.length);
  if (a === b) return sequence(text(low[0]!), sameLength(restLow, restHigh));
  const lowFull = restLow === zeros;
  const highFull = restHigh === nines;
  const options: Expression[] = [];
  if (!lowFull) options.push(sequence(text(low[0]!), sameLength(restLow, nines)));
  const [from, to] = [lowFull ? a : a + 1, highFull ? b : b - 1];
  if (from <= to) {
    options.push(sequence(charSet([[0x30 + from, 0x30 + to]]), repeat(digit, zeros.length, zeros.length)));
  }
  if (!highFull) options.push(sequence(text(high[0]!), sameLength(zeros, restHigh)));
  return choice(...options);
}

function exactInteger(bound: Bound, step: bigint): bigint {
  const rounded = BigInt(step > 0n ? Math.ceil(bound.value) : Math.floor(bound.value));
  return bound.exclusive && Number.isInteger(bound.value) ? rounded + step : rounded;
}

export function emptyRange(): Contradiction {
  return new Contradiction("no number lies between the given minimum and maximum");
}

// Formats of numbers, as OpenAPI defines them.

/** OpenAPI formats that set bounds. The others fit everything generated: at most 18 digits, 15 before a point. */
const WIDTHS = new Map<string, readonly [least: number, greatest: number]>([
  ...[8, 16, 32].map((bits) => [`int${bits}`, [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]] as const),
  ...[8, 16, 32].map((bits) => [`uint${bits}`, [0, 2 ** bits - 1]] as const),
  ["uint", [0, Number.POSITIVE_INFINITY]],
  ["uint64", [0, Number.POSITIVE_INFINITY]],
]);

/** The bounds that a number's format sets. */
export function formatBounds(format: string): readonly [least: number, greatest: number] {
  return WIDTHS.get(format) ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
}
