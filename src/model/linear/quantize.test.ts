import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../training/random.ts";
import { narrowToFloat16, widenFloat16 } from "../checkpoint/half-floats.ts";
import { matrixOf } from "./matrix-rows.ts";
import { INT4_BLOCK, quantizeInt4, quantizeInt8, transposed, widenInt4, widenInt8 } from "./quantize.ts";

/** Zero or of a size whose scale is a normal number; scales below that are too coarse to promise anything. */
const weight = fc.float({ noNaN: true, min: -100, max: 100 }).map((x) => (Math.abs(x) < 1e-30 ? 0 : x));

const weightArrays = (rows: number, columns: number) =>
  fc.array(weight, { minLength: rows * columns, maxLength: rows * columns }).map((values) => Float32Array.from(values));

describe("quantizeInt8", () => {
  it("is within half a step of every weight, transposed, with the largest exact", () => {
    fc.assert(
      fc.property(weightArrays(3, 8), (weights) => {
        const { values, scales } = quantizeInt8(matrixOf(weights, 3, 8));
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
          const weights = store(Float32Array.from(bytes, (byte) => byte * step));
          const { values, scales } = quantizeInt8(matrixOf(weights, out, inputs));
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

  it("stays within the range if a row has too many steps for it", () => {
    const weights = Float32Array.from({ length: 200 }, (_, i) => (i + 1) * 0.01);
    const { values, scales } = quantizeInt8(matrixOf(weights, 1, 200));
    expect(Math.max(...values)).toBe(127);
    expect(scales[0]).toBeCloseTo(2 / 127, 6);
  });

  it("keeps zero rows zero", () => {
    const rounded = quantizeInt8(matrixOf(new Float32Array(4), 2, 2));
    expect(rounded).toEqual({ values: new Int8Array(4), scales: new Float32Array(2) });
  });
});

describe("quantizeInt4", () => {
  it("is within a step of every weight (half a step except at the end of the scale)", () => {
    fc.assert(
      fc.property(weightArrays(2, 2 * INT4_BLOCK), (weights) => {
        const { values, scales } = quantizeInt4(matrixOf(weights, 2, 2 * INT4_BLOCK));
        for (const [i, weight] of weights.entries()) {
          const byte = values[i >> 1]!;
          const nibble = i % 2 === 0 ? byte & 15 : byte >> 4;
          const scale = scales[Math.floor(i / INT4_BLOCK)]!;
          expect(Math.abs((nibble - 8) * scale - weight)).toBeLessThanOrEqual(Math.abs(scale) * 1.0001);
        }
      }),
    );
  });

  it("refuses sizes that do not divide into blocks", () => {
    expect(() => quantizeInt4(matrixOf(new Float32Array(40), 1, 40))).toThrow("multiple of 32");
  });
});

describe("matrices of several pieces", () => {
  const [out, inputs] = [300, 2016];
  const random = seededRandom(11);
  const weights = Float32Array.from({ length: out * inputs }, () => random() - 0.5);
  const matrix = matrixOf(weights, out, inputs);
  const row = (o: number) => weights.slice(o * inputs, (o + 1) * inputs);

  it("are rounded row by row", () => {
    const [int8, int4] = [quantizeInt8(matrix), quantizeInt4(matrix)];
    const [widened8, widened4] = [widenInt8(int8, out, inputs), widenInt4(int4)];
    for (const o of [0, 63, 64, 127, 128, 191, 255, 256, 299]) {
      const alone = matrixOf(row(o), 1, inputs);
      const [from, to] = [o * inputs, (o + 1) * inputs];
      expect(widened8.slice(from, to)).toEqual(widenInt8(quantizeInt8(alone), 1, inputs));
      expect(widened4.slice(from, to)).toEqual(widenInt4(quantizeInt4(alone)));
    }
  });

  it("are transposed into given memory", () => {
    const given = new Float32Array(out * inputs);
    expect(transposed(matrix, given)).toBe(given);
    for (let o = 0; o < out; o += 23) {
      expect(Float32Array.from({ length: inputs }, (_, i) => given[i * out + o]!)).toEqual(row(o));
    }
  });
});

it("rounds halves away from zero", () => {
  const weights = Float32Array.of(127, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.25, -0.25, 126.5, -126.5);
  const { values } = quantizeInt8(matrixOf(weights, 1, weights.length));
  expect([...values]).toEqual([127, 1, -1, 2, -2, 3, -3, 0, 0, 127, -127]);
});
