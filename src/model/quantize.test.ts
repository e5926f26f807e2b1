import fc from "fast-check";
import { describe, expect, it } from "vitest";
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
