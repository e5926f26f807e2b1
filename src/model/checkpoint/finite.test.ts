import fc from "fast-check";
import { expect, it } from "vitest";
import { firstNonFinite } from "./finite.ts";

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
