import fc from "fast-check";
import { expect, it } from "vitest";
import { PREFILL_PARTS, partEnds, piecesOf } from "./prefill-pieces.ts";

it("divides a piece into parts of about the same size", () => {
  expect(partEnds(0, 512, 32, 128)).toEqual([128, 256, 384, 512]);
  expect(partEnds(0, 257, 16, 64)).toEqual([64, 128, 192, 257]);
  expect(partEnds(0, 300, 32, 128)).toEqual([128, 300]);
  expect(partEnds(0, 127, 16, 64)).toEqual([127]);
  expect(partEnds(0, 256, 128, 64)).toEqual([128, 256]);
});

it("counts from the start of a piece's first block", () => {
  expect(partEnds(16, 496, 32, 128)).toEqual([128, 256, 384, 512]);
  expect(partEnds(31, 2, 32, 128)).toEqual([33]);
  expect(partEnds(63, 65, 64, 64)).toEqual([128]);
});

it("ends parts at block boundaries, in order, the last one at the end of the piece", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 600 }),
      fc.constantFrom(1, 8, 16, 32, 48, 128),
      fc.nat(127),
      (tokens, positionsPerBlock, any) => {
        const begun = any % positionsPerBlock;
        const ends = partEnds(begun, tokens, positionsPerBlock, 64);
        expect(ends.length).toBeLessThanOrEqual(PREFILL_PARTS);
        expect(ends.at(-1)).toBe(begun + tokens);
        for (const end of ends.slice(0, -1)) expect(end % positionsPerBlock).toBe(0);
        // Never a single token.
        for (const [i, end] of ends.entries()) expect(end - (ends[i - 1] ?? begun)).toBeGreaterThan(1);
      },
    ),
  );
});

it("cuts a chunk into pieces that end where blocks end, wherever it starts, and leaves no token alone", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 600 }),
      fc.nat(300),
      fc.constantFrom(16, 32, 48, 128, 300),
      (count, start, positionsPerBlock) => {
        const tokens = Int32Array.from({ length: count }, (_, i) => i);
        const whole = { tokens, start, blocks: new Int32Array(0), adapterSlot: 0, logits: "last" } as const;
        const pieces = piecesOf(whole, positionsPerBlock, 128);
        expect(pieces.flatMap((piece) => [...piece.tokens])).toEqual([...tokens]);
        let at = start;
        for (const piece of pieces) {
          expect(piece.start).toBe(at);
          at += piece.tokens.length;
          if (piece !== pieces.at(-1)) expect(at % positionsPerBlock).toBe(0);
          expect(piece.tokens.length).toBeLessThanOrEqual(Math.max(128, positionsPerBlock) + 2);
          expect(piece.tokens.length).toBeGreaterThan(1);
          expect(piece.logits).toBe(piece === pieces.at(-1) ? "last" : "none");
        }
      },
    ),
  );
});

it("makes no separate piece of a block's last position", () => {
  const whole = {
    tokens: new Int32Array(40),
    start: 255,
    blocks: new Int32Array(0),
    adapterSlot: 0,
    logits: "last",
  } as const;
  expect(piecesOf(whole, 256, 256).map(({ tokens }) => tokens.length)).toEqual([40]);
});
