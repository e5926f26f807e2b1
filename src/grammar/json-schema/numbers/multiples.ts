// multipleOf: decimal texts whose value is a multiple of a divisor. Tracks the remainder digit by digit.

import { codePoints } from "../../code-points.ts";
import type { CharDfa, CharEdge } from "../../expression.ts";
import { schemaError } from "../keywords.ts";

/** The automaton has a state for each remainder at each place after the point. */
const MAX_STATES = 6_000;
const MINUS = codePoints([[0x2d, 0x2d]]);
const POINT = codePoints([[0x2e, 0x2e]]);
const DIGITS = Array.from({ length: 10 }, (_, digit) => codePoints([[0x30 + digit, 0x30 + digit]]));

/** Multiples of the divisor, written without exponent. The divisor is `units` × 10^-`places`. */
export function multiplesOf(divisor: number, path: string): CharDfa {
  const { units, places } = decimal(divisor);
  if (units * (places + 2) > MAX_STATES) {
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
