import fc from "fast-check";
import { expect, test } from "vitest";
import { utf8Ranges } from "./code-points.ts";

const character = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }));

function contains(low: number, high: number, point: number): boolean {
  const bytes = [...new TextEncoder().encode(String.fromCodePoint(point))];
  return utf8Ranges(low, high).some(
    (path) => path.length === bytes.length && path.every(([from, to], i) => bytes[i]! >= from && bytes[i]! <= to),
  );
}

test("the byte ranges match exactly the characters in the range", () => {
  fc.assert(
    fc.property(character, character, character, (a, b, point) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      fc.pre(high < 0xd800 || low > 0xdfff);
      expect(contains(low, high, point)).toBe(point >= low && point <= high);
      expect(contains(low, high, low)).toBe(true);
      expect(contains(low, high, high)).toBe(true);
    }),
  );
});

test("ASCII is a single range", () => {
  expect(utf8Ranges(0, 0x7f)).toEqual([[[0, 0x7f]]]);
});
