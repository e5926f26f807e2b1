// Encodes weights in two of llama.cpp's formats with blocks of 256 weights and small scales inside. Unlike llama.cpp we
// search no better scales, so a file is a little less exact than its own. The layouts are the same.

import { narrowToFloat16, valueOfFloat16 } from "../../src/model/checkpoint/half-floats.ts";

export const LARGE_BLOCK = 256;
export const Q4_K_BYTES = 144;
export const Q6_K_BYTES = 210;

/** Two scales, eight pairs of 6-bit factors, 256 half bytes: weight = scale * factor * q - leastScale * leastFactor. */
export function encodeQ4K(weights: Float32Array): Uint8Array {
  const bytes = new Uint8Array((weights.length / LARGE_BLOCK) * Q4_K_BYTES);
  for (let block = 0; block * LARGE_BLOCK < weights.length; block++) {
    const groups = Array.from({ length: 8 }, (_, g) =>
      weights.subarray(block * 256 + g * 32, block * 256 + g * 32 + 32),
    );
    const least = groups.map((group) => Math.max(0, -Math.min(...group)));
    const steps = groups.map((group, g) => (Math.max(...group) + least[g]!) / 15);
    const at = block * Q4_K_BYTES;
    const scale = writeHalf(bytes, at, Math.max(...steps) / 63);
    const leastScale = writeHalf(bytes, at + 2, Math.max(...least) / 63);
    for (const [g, group] of groups.entries()) {
      const factor = level(steps[g]!, scale, 63);
      const leastFactor = level(least[g]!, leastScale, 63);
      writeFactors(bytes, at + 4, g, factor, leastFactor);
      for (const [i, weight] of group.entries()) {
        const q = level(weight + leastScale * leastFactor, scale * factor, 15);
        bytes[at + 16 + (g >> 1) * 32 + i]! |= q << ((g & 1) * 4);
      }
    }
  }
  return bytes;
}

/** 256 lower halves, 256 upper pairs of bits, 16 signed factors, a scale: weight = scale * factor * (q - 32). */
export function encodeQ6K(weights: Float32Array): Uint8Array {
  const bytes = new Uint8Array((weights.length / LARGE_BLOCK) * Q6_K_BYTES);
  for (let block = 0; block * LARGE_BLOCK < weights.length; block++) {
    const values = weights.subarray(block * 256, (block + 1) * 256);
    const steps = Array.from(
      { length: 16 },
      (_, g) => Math.max(...values.subarray(g * 16, g * 16 + 16).map(Math.abs)) / 31,
    );
    const at = block * Q6_K_BYTES;
    const scale = writeHalf(bytes, at + 208, Math.max(...steps) / 127);
    for (const [i, value] of values.entries()) {
      const factor = level(steps[i >> 4]!, scale, 127);
      bytes[at + 192 + (i >> 4)] = factor;
      const q = scale * factor === 0 ? 32 : Math.min(63, Math.max(0, Math.round(value / (scale * factor)) + 32));
      const [half, quarter, l] = [i >> 7, (i >> 5) & 3, i & 31];
      bytes[at + half * 64 + (quarter & 1) * 32 + l]! |= (q & 15) << ((quarter >> 1) * 4);
      bytes[at + 128 + half * 32 + l]! |= (q >> 4) << (quarter * 2);
    }
  }
  return bytes;
}

/** The nearest of 0 .. largest steps. */
function level(value: number, step: number, largest: number): number {
  return step === 0 ? 0 : Math.min(largest, Math.max(0, Math.round(value / step)));
}

/** Gives the value as it can be read again. */
function writeHalf(bytes: Uint8Array, at: number, value: number): number {
  const [bits] = narrowToFloat16(Float32Array.of(value));
  new DataView(bytes.buffer).setUint16(at, bits!, true);
  return valueOfFloat16(bits!);
}

/** Pairs 0 to 3 are plain. The upper two bits of the others are in the upper bits of those. */
function writeFactors(bytes: Uint8Array, at: number, g: number, factor: number, leastFactor: number): void {
  if (g < 4) {
    bytes[at + g]! |= factor;
    bytes[at + 4 + g]! |= leastFactor;
    return;
  }
  bytes[at + 4 + g] = (factor & 15) | ((leastFactor & 15) << 4);
  bytes[at + g - 4]! |= (factor >> 4) << 6;
  bytes[at + g]! |= (leastFactor >> 4) << 6;
}
