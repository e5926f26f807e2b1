import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { firstNonFinite, narrowToBfloat16, narrowToFloat16, widenBfloat16, widenFloat16 } from "./half-floats.ts";

const all = Uint16Array.from({ length: 65_536 }, (_, i) => i);

function widened(widen: typeof widenFloat16): Float32Array {
  const values = new Float32Array(65_536);
  widen(all, values, 0);
  return values;
}

/** The value of a small float format from its definition. */
function decoded(bits: number, exponentBits: number, mantissaBits: number): number {
  const sign = bits >>> 15 === 1 ? -1 : 1;
  const bias = 2 ** (exponentBits - 1) - 1;
  const exponent = (bits >>> mantissaBits) & (2 ** exponentBits - 1);
  const fraction = (bits & (2 ** mantissaBits - 1)) / 2 ** mantissaBits;
  if (exponent === 2 ** exponentBits - 1) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** (1 - bias) : sign * (1 + fraction) * 2 ** (exponent - bias);
}

describe.each([
  { name: "float16", widen: widenFloat16, narrow: narrowToFloat16, exponentBits: 5, mantissaBits: 10 },
  { name: "bfloat16", widen: widenBfloat16, narrow: narrowToBfloat16, exponentBits: 8, mantissaBits: 7 },
])("$name", ({ widen, narrow, exponentBits, mantissaBits }) => {
  test("every value widens to what the format defines, and narrows back to the same bits", () => {
    const values = widened(widen);
    const back = narrow(values);
    let wrong = 0;
    for (let bits = 0; bits < 65_536; bits++) {
      const expected = decoded(bits, exponentBits, mantissaBits);
      if (!Object.is(values[bits], expected)) wrong++;
      if (
        Number.isNaN(expected) ? !Number.isNaN(decoded(back[bits]!, exponentBits, mantissaBits)) : back[bits] !== bits
      ) {
        wrong++;
      }
    }
    expect(wrong).toBe(0);
  });

  test("narrowing rounds to the nearest value, ties to the even one", () => {
    const anyFloat32 = fc.oneof(
      fc.float({ noNaN: true }),
      fc.float({ noNaN: true, min: -1, max: 1 }),
      // Exactly between two neighbours.
      fc.integer({ min: 0, max: 0x7bfe }).map((bits) => {
        const [a, b] = [decoded(bits, exponentBits, mantissaBits), decoded(bits + 1, exponentBits, mantissaBits)];
        return Math.fround((a + b) / 2);
      }),
    );
    fc.assert(
      fc.property(anyFloat32, (value) => {
        const bits = narrow(Float32Array.of(value))[0]!;
        const magnitude = bits & 0x7fff;
        expect(bits >>> 15).toBe(Object.is(value, -0) || value < 0 ? 1 : 0);
        const largest = decoded(((2 ** exponentBits - 1) << mantissaBits) - 1, exponentBits, mantissaBits);
        const distance = (candidate: number) => {
          const is = decoded(candidate, exponentBits, mantissaBits);
          // Rounding treats infinity as the next step after the largest value.
          const step = 2 ** (2 ** (exponentBits - 1) - 1 - mantissaBits);
          return Math.abs(Math.abs(value) - (is === Infinity ? largest + step : is));
        };
        if (Math.abs(value) > largest * 1.01) {
          expect(decoded(magnitude, exponentBits, mantissaBits)).toBe(Infinity);
          return;
        }
        for (const neighbour of [magnitude - 1, magnitude + 1]) {
          if (neighbour < 0 || Number.isNaN(decoded(neighbour, exponentBits, mantissaBits))) continue;
          if (distance(neighbour) === distance(magnitude)) expect(magnitude & 1).toBe(0);
          else expect(distance(magnitude)).toBeLessThan(distance(neighbour));
        }
      }),
      { numRuns: 3000 },
    );
  });
});

test("the edges of float16", () => {
  const bits = narrowToFloat16(
    Float32Array.of(65_504, 65_519, 65_520, 2 ** -24, 2 ** -25, 2 ** -25 * 1.5, 1 + 2 ** -11),
  );
  expect([...bits]).toEqual([0x7bff, 0x7bff, 0x7c00, 1, 0, 1, 0x3c00]);
});

test("widening writes at the offset only, also into a view", () => {
  const backing = new Float32Array(6).fill(7);
  widenBfloat16(Uint16Array.of(0x3f80, 0xc000), backing.subarray(1), 2);
  expect([...backing]).toEqual([7, 7, 7, 1, -2, 7]);
});

const exponents = { F32: [0x7f800000, 31], F16: [0x7c00, 15], BF16: [0x7f80, 15] } as const;

it.each(["F32", "F16", "BF16"] as const)("agrees with checking each value of any %s bits", (dtype) => {
  const [exponent, signAt] = exponents[dtype];
  const any = fc.integer({ min: 0, max: 2 ** (signAt + 1) - 1 });
  const special = fc
    .tuple(fc.boolean(), fc.nat(3))
    .map(([negative, low]) => exponent + low + (negative ? 2 ** signAt : 0));
  const finite = any.map((bits) => ((bits & exponent) === exponent ? 0 : bits));
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 8, arbitrary: finite }, special), { maxLength: 9 }), (bits) => {
      const stored = dtype === "F32" ? new Float32Array(Uint32Array.from(bits).buffer) : Uint16Array.from(bits);
      expect(firstNonFinite(stored, dtype)).toBe(bits.findIndex((value) => (value & exponent) === exponent));
    }),
  );
});
