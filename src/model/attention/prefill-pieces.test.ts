import fc from "fast-check";
import { expect, it } from "vitest";
import { PREFILL_PARTS, partEnds } from "./prefill-pieces.ts";

it("divides a piece into parts of about the same size", () => {
  expect(partEnds(512, 32, 128)).toEqual([128, 256, 384, 512]);
  expect(partEnds(257, 16, 64)).toEqual([64, 128, 192, 257]);
  expect(partEnds(300, 32, 128)).toEqual([128, 300]);
  expect(partEnds(127, 16, 64)).toEqual([127]);
  expect(partEnds(256, 128, 64)).toEqual([128, 256]);
});

it("ends parts on block boundaries, in order, the last one with the piece", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 600 }), fc.constantFrom(1, 8, 16, 32, 48, 128), (tokens, blockSize) => {
      const ends = partEnds(tokens, blockSize, 64);
      expect(ends.length).toBeLessThanOrEqual(PREFILL_PARTS);
      expect(ends.at(-1)).toBe(tokens);
      for (const [i, end] of ends.slice(0, -1).entries()) {
        expect(end % blockSize).toBe(0);
        expect(end).toBeLessThan(ends[i + 1]! - 1);
        expect(end).toBeGreaterThan(0);
      }
    }),
  );
});
