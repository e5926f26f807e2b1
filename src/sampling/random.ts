// Random numbers as a pure function of (seed, choice, output position, attempt): Philox4x32-10, a counter-based
// generator. It has no state, so the same seed gives the same tokens in any batch, after preemption and after
// recomputation.

import { randomFillSync } from "node:crypto";

/** The 64-bit key of one choice's stream. */
export interface RandomKey {
  low: number;
  high: number;
}

/** Key of choice `index`: seed + index modulo 2^64; a random key for a null seed. */
export function randomKey(seed: bigint | null, index: number): RandomKey {
  if (seed === null) {
    const [low, high] = randomFillSync(new Uint32Array(2)) as unknown as [number, number];
    return { low, high };
  }
  const key = BigInt.asUintN(64, seed + BigInt(index));
  return { low: Number(key & 0xffff_ffffn), high: Number(key >> 32n) };
}

/** Uniform in [0, 1), a multiple of 2^-53. */
export function uniformAt(key: RandomKey, position: number, attempt: number): number {
  const [a, b] = philox(position, attempt, 0, 0, key.low, key.high);
  return ((a >>> 5) * 2 ** 26 + (b >>> 6)) * 2 ** -53;
}

/** Philox4x32 with 10 rounds: maps a 128-bit counter and a 64-bit key to four 32-bit words. */
export function philox(
  c0: number,
  c1: number,
  c2: number,
  c3: number,
  key0: number,
  key1: number,
): [number, number, number, number] {
  let [w0, w1, w2, w3, k0, k1] = [c0 | 0, c1 | 0, c2 | 0, c3 | 0, key0 | 0, key1 | 0];
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(0xd2511f53, w0);
    const high1 = multiplyHigh(0xcd9e8d57, w2);
    const low0 = Math.imul(0xd2511f53, w0);
    const low1 = Math.imul(0xcd9e8d57, w2);
    w0 = high1 ^ w1 ^ k0;
    w1 = low1;
    w2 = high0 ^ w3 ^ k1;
    w3 = low0;
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  return [w0 >>> 0, w1 >>> 0, w2 >>> 0, w3 >>> 0];
}

/** The upper 32 bits of the unsigned 64-bit product. */
function multiplyHigh(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle & 0xffff);
  return aHigh * bHigh + Math.floor(middle / 0x10000) + (carry >>> 16);
}
