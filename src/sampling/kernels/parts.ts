// The pieces the sampling kernels are made of: walking a row block by block and vector by vector, the weight of an
// entry (its unnormalised probability), and the sort key of an entry (the order of floats as integers).
// A row is a multiple of 64 floats, padded with -Infinity. Everything here emits code; nothing runs.

import type { Code, Local } from "./wasm.ts";
import { f32x4, get, i32, i32x4, repeatWhile, set, v128 } from "./wasm.ts";

/** Entries per block: 16 vectors of 4 floats. */
export const blockEntries = 64;
const blockBytes = blockEntries * 4;

/** The histogram kernel sorts entries into this many buckets; one more takes the entries outside its range. */
export const histogramBuckets = 2048;
/** Fixed addresses: i32[2049] counts of the histogram, f32[64] weights of one block; the rest is the caller's. */
export const countAddress = 0;
export const blockWeightsAddress = 8256;
export const firstFreeAddress = blockWeightsAddress + blockBytes;

/** Entries further below the maximum than this, in units of the temperature, weigh nothing: 64 octaves. */
export const weightRange = 64 * Math.LN2;

// ln 2 in two pieces; the first has so few bits that its product with an exponent is exact.
const ln2High = 0.693359375;

/** w = e^y for y in [-weightRange, 0], to one unit in the last place of a float; exactly 1 for 0. Rubbish outside. */
function exponential(v: Record<"y" | "t" | "r" | "w", Local>): Code {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, ready to be added to an exponent field.
  const rounding = f32x4.const(12_582_912);
  const exponent = f32x4.sub(get(v.t), rounding);
  const { r } = v;
  // e^r = 1 + r + r^2 * (1/2! + r/3! + ... + r^5/7!) for |r| <= ln2 / 2: the next term is below 5e-9.
  let polynomial: Code = f32x4.const(1 / 5040);
  for (const factorial of [720, 120, 24, 6, 2]) {
    polynomial = f32x4.add(f32x4.mul(polynomial, get(r)), f32x4.const(1 / factorial));
  }
  return [
    ...set(v.t, f32x4.add(f32x4.mul(get(v.y), f32x4.const(Math.LOG2E)), rounding)),
    ...set(r, f32x4.sub(get(v.y), f32x4.mul(exponent, f32x4.const(ln2High)))),
    ...set(r, f32x4.sub(get(r), f32x4.mul(exponent, f32x4.const(Math.LN2 - ln2High)))),
    ...set(v.w, f32x4.add(f32x4.add(f32x4.mul(polynomial, f32x4.mul(get(r), get(r))), get(r)), f32x4.const(1))),
    ...set(v.w, i32x4.add(get(v.w), i32x4.shl(get(v.t), i32.const(23)))),
  ];
}

/** w = e^((x - max) * inverseTemperature) where x >= cut, else 0. */
export function weight(v: Record<"x" | "y" | "t" | "r" | "w" | "max" | "inverseTemperature" | "cut", Local>): Code {
  return [
    ...set(v.y, f32x4.mul(f32x4.sub(get(v.x), f32x4.splat(get(v.max))), f32x4.splat(get(v.inverseTemperature)))),
    ...exponential(v),
    ...set(v.w, v128.and(get(v.w), f32x4.ge(get(v.x), f32x4.splat(get(v.cut))))),
  ];
}

/** distance = how many representable floats x lies below the float with sort key `hiKey` (-0 counts as +0). */
export function keyDistance(v: Record<"x" | "bits" | "distance" | "hiKey", Local>): Code {
  // Flipping all bits but the sign of negative floats makes them ordered as signed integers.
  const flip = i32x4.shrU(i32x4.shrS(get(v.bits), i32.const(31)), i32.const(1));
  return [
    ...set(v.bits, f32x4.add(get(v.x), v128.zero)),
    ...set(v.distance, i32x4.sub(i32x4.splat(get(v.hiKey)), v128.xor(get(v.bits), flip))),
  ];
}

/** Runs the body for each vector of the block at `row`, with `x` loaded, and leaves `row` at the next block. */
export function eachVector(v: Record<"row" | "x" | "end", Local>, body: Code): Code {
  return [
    ...set(v.end, i32.add(get(v.row), i32.const(blockBytes))),
    ...repeatWhile(
      [...set(v.x, v128.load(get(v.row), 0)), ...body, ...set(v.row, i32.add(get(v.row), i32.const(16)))],
      i32.sub(get(v.end), get(v.row)),
    ),
  ];
}

/** Runs the body for each block; the body leaves `row` alone or at the next block. */
export function eachBlock(v: Record<"row" | "blocks" | "maxima" | "next", Local>, body: Code): Code {
  return repeatWhile(
    [
      ...set(v.next, i32.add(get(v.row), i32.const(blockBytes))),
      ...body,
      ...set(v.row, get(v.next)),
      ...set(v.maxima, i32.add(get(v.maxima), i32.const(4))),
      ...set(v.blocks, i32.sub(get(v.blocks), i32.const(1))),
    ],
    get(v.blocks),
  );
}
