import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { narrowToFloat16, widenFloat16 } from "./half-floats.ts";
import { INT4_BLOCK, quantizeInt4, quantizeInt8 } from "./quantize.ts";

/** Zero or of a size whose scale is a normal number; scales below that are too coarse to promise anything. */
const weight = fc.float({ noNaN: true, min: -100, max: 100 }).map((x) => (Math.abs(x) < 1e-30 ? 0 : x));

const weightArrays = (rows: number, columns: number) =>
  fc.array(weight, { minLength: rows * columns, maxLength: rows * columns }).map((values) => Float32Array.from(values));

describe("quantizeInt8", () => {
  it("is within half a step of every weight, transposed, with the largest exact", () => {
    fc.assert(
      fc.property(weightArrays(3, 8), (weights) => {
        const { values, scales } = quantizeInt8(weights, 3, 8);
        for (let o = 0; o < 3; o++) {
          for (let i = 0; i < 8; i++) {
            const error = Math.abs(values[i * 3 + o]! * scales[o]! - weights[o * 8 + i]!);
            expect(error).toBeLessThanOrEqual(scales[o]! * 0.5001);
          }
        }
      }),
    );
  });

  const [out, inputs] = [4, 64];
  const stepped = fc.record({
    bytes: fc.array(fc.integer({ min: -127, max: 127 }), { minLength: out * inputs, maxLength: out * inputs }),
    step: fc.float({ min: Math.fround(1e-3), max: Math.fround(0.1), noNaN: true }),
  });
  const throughFloat16 = (values: Float32Array) => {
    const wide = new Float32Array(values.length);
    widenFloat16(narrowToFloat16(values), wide, 0);
    return wide;
  };
  it.each([
    ["float32", (values: Float32Array) => values],
    ["float16", throughFloat16],
  ])(
    "finds the bytes of weights that were rounded before, with one step for all outputs, and stored as %s",
    (_, store) => {
      fc.assert(
        fc.property(stepped, ({ bytes, step }) => {
          const { values, scales } = quantizeInt8(store(Float32Array.from(bytes, (byte) => byte * step)), out, inputs);
          for (let o = 0; o < out; o++) {
            const row = bytes.slice(o * inputs, (o + 1) * inputs);
            if (row.every((byte) => byte === 0)) continue;
            // Twice the bytes in half the step are the same weights.
            const times = Math.round(step / scales[o]!);
            expect(Math.abs((times * scales[o]!) / step - 1)).toBeLessThan(1e-3);
            for (const [i, byte] of row.entries()) expect(values[i * out + o]).toBe(times * byte);
          }
        }),
      );
    },
  );

  it("keeps within the range where a row's steps are too many for it", () => {
    const weights = Float32Array.from({ length: 127 }, (_, i) => (i + 1) * 0.01);
    const { values, scales } = quantizeInt8(weights, 1, 127, 63);
    expect(Math.max(...values)).toBe(63);
    expect(scales[0]).toBeCloseTo(1.27 / 63, 6);
  });

  it("keeps zero rows zero", () => {
    expect(quantizeInt8(new Float32Array(4), 2, 2)).toEqual({ values: new Int8Array(4), scales: new Float32Array(2) });
  });
});

describe("quantizeInt4", () => {
  it("is within a step of every weight (half a step but for the end of the scale)", () => {
    fc.assert(
      fc.property(weightArrays(2, 2 * INT4_BLOCK), (weights) => {
        const { values, scales } = quantizeInt4(weights, 2, 2 * INT4_BLOCK);
        for (const [i, weight] of weights.entries()) {
          const byte = values[i >> 1]!;
          const nibble = i % 2 === 0 ? byte & 15 : byte >> 4;
          const scale = scales[Math.floor(i / INT4_BLOCK)]!;
          expect(Math.abs((nibble - 8) * scale - weight)).toBeLessThanOrEqual(Math.abs(scale) * 1.0001);
        }
      }),
    );
  });

  it("refuses sizes that have no whole blocks", () => {
    expect(() => quantizeInt4(new Float32Array(40), 1, 40)).toThrow("multiple of 32");
  });
});
