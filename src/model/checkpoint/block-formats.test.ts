// Compares widening with slow versions that look for every value on its own, bit by bit, in the layouts that llama.cpp
// documents. Random bytes are valid blocks, except that scales must be finite.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_FORMATS, type WeightDtype } from "./block-formats.ts";

/** A float16 by its definition. */
function half(bytes: Uint8Array, at: number): number {
  const bits = bytes[at]! + 256 * bytes[at + 1]!;
  const [sign, exponent, fraction] = [bits >= 32768 ? -1 : 1, Math.floor(bits / 1024) % 32, bits % 1024];
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const bit = (bytes: Uint8Array, index: number): number =>
  Math.floor(bytes[Math.floor(index / 8)]! / 2 ** (index % 8)) % 2;
const nibble = (byte: number, high: boolean): number => (high ? Math.floor(byte / 16) : byte % 16);
const signed = (byte: number): number => (byte > 127 ? byte - 256 : byte);

/** Value i of a block of 32 with half bytes from `at` on: the second 16 are the high halves. */
const smallQuant = (block: Uint8Array, at: number, i: number): number => nibble(block[at + (i % 16)]!, i >= 16);

/** The bits of the 12 bytes of factors, as one list of eight 6-bit factors and eight 6-bit least factors. */
function factors(block: Uint8Array, group: number): [number, number] {
  const s = block.subarray(4, 16);
  if (group < 4) return [s[group]! % 64, s[group + 4]! % 64];
  return [
    (s[group + 4]! % 16) + 16 * Math.floor(s[group - 4]! / 64),
    Math.floor(s[group + 4]! / 16) + 16 * Math.floor(s[group]! / 64),
  ];
}

/** Value i of a block of 256 with half bytes from `at` on: 64 values share 32 bytes. */
const largeQuant = (block: Uint8Array, at: number, i: number): number =>
  nibble(block[at + 32 * Math.floor(i / 64) + (i % 32)]!, i % 64 >= 32);

const slow: Partial<Record<WeightDtype, (block: Uint8Array, i: number) => number>> = {
  Q8_0: (b, i) => half(b, 0) * signed(b[2 + i]!),
  Q4_0: (b, i) => half(b, 0) * (smallQuant(b, 2, i) - 8),
  Q4_1: (b, i) => half(b, 0) * smallQuant(b, 4, i) + half(b, 2),
  Q5_0: (b, i) => half(b, 0) * (smallQuant(b, 6, i) + 16 * bit(b.subarray(2), i) - 16),
  Q5_1: (b, i) => half(b, 0) * (smallQuant(b, 8, i) + 16 * bit(b.subarray(4), i)) + half(b, 2),
  Q4_K: (b, i) => {
    const [factor, least] = factors(b, Math.floor(i / 32));
    return half(b, 0) * factor * largeQuant(b, 16, i) - half(b, 2) * least;
  },
  Q5_K: (b, i) => {
    const [factor, least] = factors(b, Math.floor(i / 32));
    const fifth = bit(b.subarray(16 + (i % 32)), Math.floor(i / 32));
    return half(b, 0) * factor * (largeQuant(b, 48, i) + 16 * fifth) - half(b, 2) * least;
  },
  Q6_K: (b, i) => {
    const [part, inPart] = [Math.floor(i / 128), i % 128];
    const [quarter, l] = [Math.floor(inPart / 32), inPart % 32];
    const lower = nibble(b[64 * part + l + (quarter % 2 === 1 ? 32 : 0)]!, quarter >= 2);
    const upper = Math.floor(b[128 + 32 * part + l]! / 4 ** quarter) % 4;
    return half(b, 208) * signed(b[192 + 8 * part + 2 * quarter + Math.floor(l / 16)]!) * (lower + 16 * upper - 32);
  },
};
/** Where the scales of a block are. */
const scales: Partial<Record<WeightDtype, number[]>> = {
  Q4_1: [0, 2],
  Q5_1: [0, 2],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
};

describe.each(Object.keys(slow) as WeightDtype[])("%s", (dtype) => {
  const { values, bytes, widen } = BLOCK_FORMATS[dtype];
  it("gives the value that its layout says, for any bits", () => {
    const blocks = fc.uint8Array({ minLength: 2 * bytes, maxLength: 2 * bytes }).map((random) => {
      // clears a bit of the exponent, so that no scale is infinite
      for (const block of [0, bytes]) for (const at of scales[dtype] ?? [0]) random[block + at + 1]! &= 0xbf;
      return random;
    });
    fc.assert(
      fc.property(blocks, (stored) => {
        const widened = new Float32Array(2 * values);
        widen(stored, widened);
        const expected = widened.map((_, i) => {
          const block = stored.subarray(i < values ? 0 : bytes).subarray(0, bytes);
          return slow[dtype]!(block, i % values);
        });
        // a zero may have another sign
        expect(widened.map((value) => value + 0)).toEqual(expected.map((value) => value + 0));
      }),
      { numRuns: 30 },
    );
  });
});

it.each([
  ["F32", [0, 0, 128, 63, 0, 0, 0, 192], [1, -2]],
  ["F16", [0, 60, 0, 192], [1, -2]],
  ["BF16", [128, 63, 0, 192], [1, -2]],
] as const)("%s is plain numbers", (dtype, stored, expected) => {
  const widened = new Float32Array(2);
  BLOCK_FORMATS[dtype].widen(Uint8Array.from(stored), widened);
  expect([...widened]).toEqual(expected);
});
