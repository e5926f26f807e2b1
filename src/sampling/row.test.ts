import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { referenceOrder, referenceSoftmax } from "../../test/reference/sampling.ts";
import { InvalidLogitsError } from "./errors.ts";
import { keyToFloat, sortKey } from "./float-order.ts";
import { LogitRow } from "./row.ts";
import { kthLargest } from "./select.ts";

const float = fc.float({ noNaN: true, noDefaultInfinity: true, min: -60, max: 60 });
const entry = fc.oneof(
  { weight: 6, arbitrary: float },
  { weight: 2, arbitrary: fc.integer({ min: -3, max: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NEGATIVE_INFINITY, -0, 0, -3e38, 3e38, 1e-40) },
);
const rows = fc.array(entry, { minLength: 1, maxLength: 300, size: "max" });

function scanned(logits: ArrayLike<number>): LogitRow {
  const row = new LogitRow(logits.length);
  row.load(Float32Array.from(logits));
  row.scan();
  return row;
}

/** Pseudo-random, about normal; sums and products only, so the same bits on every machine. */
function normals(count: number, scale: number): Float32Array {
  let state = 7;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return ((state >>> 0) + 0.5) / 2 ** 32;
  };
  return Float32Array.from({ length: count }, () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += uniform();
    return sum * scale;
  });
}

describe("sort keys", () => {
  it("order floats like numbers and convert back", () => {
    const any = fc.float({ noNaN: true });
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(sortKey(a) < sortKey(b)).toBe(a < b);
        expect(keyToFloat(sortKey(a))).toBe(a + 0);
      }),
    );
    expect(sortKey(-0)).toBe(sortKey(0));
    expect(keyToFloat(sortKey(1) + 1)).toBe(1 + 2 ** -23);
  });
});

describe("a row", () => {
  it("finds the maximum and the lowest id that has it", () => {
    fc.assert(
      fc.property(rows, (logits) => {
        const row = scanned(logits);
        const values = [...row.values];
        expect(row.max + 0).toBe(Math.max(...values) + 0);
        if (row.max > Number.NEGATIVE_INFINITY) expect(row.argmax()).toBe(values.indexOf(row.max));
      }),
    );
  });

  it("refuses NaN and +Infinity wherever they are, and rows that are too short", () => {
    for (const size of [1, 63, 64, 65, 130]) {
      for (let at = 0; at < size; at++) {
        for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
          const logits = new Array<number>(size).fill(1);
          logits[at] = bad;
          expect(() => scanned(logits)).toThrow(InvalidLogitsError);
        }
      }
    }
    expect(() => new LogitRow(10).load(new Float32Array(9))).toThrow(RangeError);
  });

  it("finds the k-th largest entry for any k", () => {
    fc.assert(
      fc.property(rows, fc.nat(), float, (logits, anyK, low) => {
        const row = scanned(logits);
        const k = 1 + (anyK % logits.length);
        const descending = [...row.values].sort((a, b) => b - a);
        // + 0: both zeros are the same logit
        const value = descending[k - 1]! + 0;
        const found = (least: number) => {
          const largest = kthLargest(row, k, least);
          return largest && { ...largest, value: largest.value + 0 };
        };
        expect(found(Number.NEGATIVE_INFINITY)).toEqual({
          value,
          above: descending.filter((other) => other > value).length,
        });
        const reachable = descending.filter((other) => other >= low).length >= k;
        expect(found(low)?.value ?? null).toBe(reachable && row.max >= low ? value : null);
      }),
    );
  });

  it("finds the k-th largest of a large row", () => {
    const logits = normals(20_000, 3);
    const row = scanned(logits);
    const descending = [...logits].sort((a, b) => b - a);
    for (const k of [1, 2, 20, 300, 313, 314, 5000, 20_000]) {
      expect(kthLargest(row, k, Number.NEGATIVE_INFINITY)?.value).toBe(descending[k - 1]);
    }
  });

  it("counts and gathers entries by value", () => {
    fc.assert(
      fc.property(rows, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 400 }), (logits, i, j, limit) => {
        const row = scanned(logits);
        const [a, b] = [row.values[i % logits.length]!, row.values[j % logits.length]!];
        const [low, high] = a < b ? [a, b] : [b, a];
        const ids = [...row.values.keys()].filter((id) => row.values[id]! >= low && row.values[id]! <= high);
        const found = [...row.gather(sortKey(low), sortKey(high), limit)].filter((id) => id < logits.length);
        expect(found).toEqual(ids.slice(0, limit));
        expect(row.countAtLeast(low)).toBe([...row.values].filter((value) => value >= low).length);
        const id = i % logits.length;
        expect(row.equalBefore(id)).toBe([...row.values].slice(0, id).filter((value) => value === a).length);
      }),
    );
  });

  it("weighs entries like exp, to the rounding of the exponent to a float", () => {
    for (const temperature of [0.01, 0.5, 1, 2]) {
      // 2,000 entries over the whole range in which entries weigh anything.
      const logits = Float32Array.from({ length: 2000 }, (_, i) => -(i / 2000) * 44 * temperature);
      const row = scanned(logits);
      row.weigh(temperature, row.weightlessBelow(temperature));
      for (const [id, value] of logits.entries()) {
        const exact = Math.exp(value / temperature);
        const tolerance = 2 ** -23 * (1 - value / temperature);
        expect(Math.abs(row.weightOf(id) / exact - 1)).toBeLessThan(tolerance);
      }
      expect(row.weightOf(0)).toBe(1);
    }
  });

  it("has the mass of a softmax to 1e-7 for any distribution", () => {
    for (const scale of [0, 0.01, 1, 3, 10]) {
      const logits = normals(20_000, scale);
      const row = scanned(logits);
      const exact = logits.reduce((sum, value) => sum + Math.exp(value - row.max), 0);
      expect(Math.abs(row.unitMass() / exact - 1)).toBeLessThan(1e-7);
    }
  });

  it("has the mass of a softmax above any cut", () => {
    fc.assert(
      fc.property(fc.array(float, { minLength: 1, maxLength: 300, size: "max" }), fc.nat(), (logits, i) => {
        const row = scanned(logits);
        const probabilities = referenceSoftmax([...row.values]);
        const cut = Math.max(row.values[i % logits.length]!, row.weightlessBelow(1));
        const share = probabilities.reduce((sum, p, id) => (row.values[id]! >= cut ? sum + p : sum), 0);
        const mass = row.weigh(1, cut);
        expect(mass / row.unitMass()).toBeCloseTo(share, 6);
        expect(row.massFrom(cut)).toBe(mass);
        expect(1 / row.unitMass()).toBeCloseTo(Math.max(...probabilities), 6);
      }),
    );
  });

  it("lays tokens end to end by id, each as wide as its probability", () => {
    const logits = normals(500, 2);
    const row = scanned(logits);
    const probabilities = referenceSoftmax([...logits].map((value) => value / 0.8));
    const cut = row.weightlessBelow(0.8);
    const mass = row.weigh(0.8, cut);
    let before = 0;
    for (const [id, probability] of probabilities.entries()) {
      expect(row.tokenAt((before + probability / 2) * mass, cut)).toBe(id);
      before += probability;
    }
    expect(row.tokenAt(0, cut)).toBe(0);
    // Rounding may push the target to or past the end: the last token that weighs anything.
    expect(row.tokenAt(mass * 1.0001, cut)).toBe(499);
  });

  it("gives the same bits on every machine", () => {
    const row = scanned(normals(10_000, 3));
    expect(referenceOrder([...row.values])[0]).toBe(row.argmax());
    expect(row.unitMass()).toBe(17.943273454129667);
  });
});
