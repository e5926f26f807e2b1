import { describe, expect, it } from "vitest";
import { philox, randomKey, uniformAt } from "./random.ts";

describe("philox", () => {
  it("gives the known answers of Philox4x32-10", () => {
    const hex = (words: number[]) => words.map((word) => word.toString(16).padStart(8, "0"));
    expect(hex(philox(0, 0, 0, 0, 0, 0))).toEqual(["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]);
    const ones = 0xffffffff;
    expect(hex(philox(ones, ones, ones, ones, ones, ones))).toEqual(["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]);
    // Digits of pi.
    expect(hex(philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0))).toEqual([
      "d16cfe09",
      "94fdcceb",
      "5001e420",
      "24126ea1",
    ]);
  });
});

describe("randomKey", () => {
  it("adds the choice to the seed, wrapping at 64 bits", () => {
    expect(randomKey(7n, 3)).toEqual(randomKey(10n, 0));
    expect(randomKey(2n ** 63n - 1n, 1)).toEqual(randomKey(-(2n ** 63n), 0));
    expect(randomKey(-2n, 2)).toEqual({ low: 0, high: 0 });
    expect(randomKey(-3n, 0)).toEqual({ low: 0xfffffffd, high: 0xffffffff });
    expect(randomKey(5n * 2n ** 32n + 6n, 0)).toEqual({ low: 6, high: 5 });
  });

  it("is random without a seed", () => {
    const keys = Array.from({ length: 100 }, () => randomKey(null, 0));
    expect(new Set(keys.map(({ low, high }) => `${low},${high}`)).size).toBe(100);
    expect(keys.filter(({ low, high }) => low >>> 0 !== low || high >>> 0 !== high)).toEqual([]);
  });
});

describe("uniformAt", () => {
  /** Chi-square over equal bins, as standard deviations above its mean. */
  function deviation(numbers: readonly number[], bins: number): number {
    const counts = new Array<number>(bins).fill(0);
    for (const number of numbers) counts[Math.floor(number * bins)]!++;
    const expected = numbers.length / bins;
    const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    return (chiSquare - (bins - 1)) / Math.sqrt(2 * (bins - 1));
  }

  const streams = {
    "positions of one seed": (i: number) => uniformAt(randomKey(1n, 0), i, 0),
    "first positions of neighbouring seeds": (i: number) => uniformAt(randomKey(BigInt(i), 0), 0, 0),
    "attempts of one position": (i: number) => uniformAt(randomKey(99n, 0), 5, i),
    "seeds that differ in the high word": (i: number) => uniformAt(randomKey(BigInt(i) << 32n, 0), 3, 0),
  };
  for (const [name, numberAt] of Object.entries(streams)) {
    it(`is uniform over ${name}, alone and in pairs`, () => {
      const numbers = Array.from({ length: 40_000 }, (_, i) => numberAt(i));
      expect(numbers.filter((u) => !(u >= 0 && u < 1))).toHaveLength(0);
      expect(Math.abs(deviation(numbers, 256))).toBeLessThan(4);
      // Pairs of neighbours on a 16 x 16 grid: no correlation from one to the next.
      const pairs = numbers.slice(1).map((u, i) => (Math.floor(u * 16) + numbers[i]!) / 16);
      expect(Math.abs(deviation(pairs, 256))).toBeLessThan(4);
      // The low bits are random too.
      expect(
        Math.abs(
          deviation(
            numbers.map((u) => (u * 2 ** 45) % 1),
            256,
          ),
        ),
      ).toBeLessThan(4);
    });
  }

  it("depends on nothing but its arguments", () => {
    const forwards = Array.from({ length: 10 }, (_, i) => uniformAt(randomKey(3n, 1), i, 0));
    const backwards = Array.from({ length: 10 }, (_, i) => uniformAt(randomKey(4n, 0), 9 - i, 0));
    expect(backwards.reverse()).toEqual(forwards);
  });
});
