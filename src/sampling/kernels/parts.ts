// Building blocks of the sampling kernels: walking a row block by block and a block by one vector or four at a time,
// and the sort key of an entry (the order of floats as integers). A row is a multiple of 64 floats, padded with
// -Infinity. Everything here emits code; nothing runs.

import type { Code, Local } from "./wasm.ts";
import { f32, f32x4, get, i32, i32x4, ifThen, repeatWhile, set, v128 } from "./wasm.ts";

/** Entries per block: 16 vectors of 4 floats. */
export const BLOCK_ENTRIES = 64;
const blockBytes = BLOCK_ENTRIES * 4;
const VECTOR_BYTES = 16;

/** The parameters that describe a row to every kernel: see `Kernels`. */
export const rowParams = { row: "i32", blocks: "i32", maxima: "i32" } as const;
export const rowLocals = { next: "i32", end: "i32" } as const;

/** Four vectors processed together. They are independent of each other, so the processor need not wait. */
const FOUR = [0, 1, 2, 3] as const;
type Four<Name extends string> = `${Name}${(typeof FOUR)[number]}`;

/** Four vector locals for each name: x0 to x3 for "x". */
export function fourLocals<Name extends string>(...names: Name[]): Record<Four<Name>, "v128"> {
  const entries = names.flatMap((name) => FOUR.map((index) => [`${name}${index}`, "v128"] as const));
  return Object.fromEntries(entries) as Record<Four<Name>, "v128">;
}

/** The code for each of the four. `of` gives the locals of one by their names without number. */
export function forFour<Name extends string>(
  locals: Record<Four<Name>, Local>,
  code: (of: (name: Name) => Local, index: number) => Code,
): Code {
  return FOUR.flatMap((index) => code((name) => locals[`${name}${index}`], index));
}

/** Runs the body for each block. The body leaves `row` alone or at the next block. */
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

/** Within `eachBlock`: runs the body only if the block has an entry >= limit. */
export const ifBlockReaches = (v: Record<"maxima", Local>, limit: Local, body: Code): Code =>
  ifThen(f32.ge(f32.load(get(v.maxima), 0), get(limit)), body);

/** Runs the body for each vector of the block at `row`, with `x` loaded, and leaves `row` at the next block. */
export function eachVector(v: Record<"row" | "x" | "end", Local>, body: Code): Code {
  return through(v, VECTOR_BYTES, [...set(v.x, v128.load(get(v.row), 0)), ...body]);
}

/** The same for four vectors at a time, with x0 to x3 loaded. */
export function eachFour(v: Record<"row" | "end" | Four<"x">, Local>, body: Code): Code {
  const load = forFour<"x">(v, (of, index) => set(of("x"), v128.load(get(v.row), index * VECTOR_BYTES)));
  return through(v, 4 * VECTOR_BYTES, [...load, ...body]);
}

/** Runs the body with `row` at every `bytes` of the block, and leaves it at the next block. */
function through(v: Record<"row" | "end", Local>, bytes: number, body: Code): Code {
  return [
    ...set(v.end, i32.add(get(v.row), i32.const(blockBytes))),
    ...repeatWhile([...body, ...set(v.row, i32.add(get(v.row), i32.const(bytes)))], i32.sub(get(v.end), get(v.row))),
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
