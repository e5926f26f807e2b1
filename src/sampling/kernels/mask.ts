// The kernel that forbids tokens: entries whose bit in a set is 0 become -Infinity.

import { BLOCK_ENTRIES, eachBlock, rowLocals, rowParams } from "./parts.ts";
import type { Code } from "./wasm.ts";
import { defineFunction, f32x4, get, i32, i32x4, ifThen, set, v128 } from "./wasm.ts";

/** Words of 32 bits for the entries of a block. */
export const blockWords = BLOCK_ENTRIES / 32;

/** Sets entry i of the row to -Infinity unless bit i & 31 of words[i >> 5] is 1. The words cover the whole row. */
export const mask = defineFunction({
  name: "mask",
  params: { ...rowParams, words: "i32" },
  locals: { ...rowLocals, word: "i32", bits: "v128" },
  result: null,
  body: (v) => {
    const forbidden = f32x4.const(Number.NEGATIVE_INFINITY);
    const lanes = i32x4.of(1, 2, 4, 8);
    const vector = (index: number, offset: number): Code => {
      const shifted = i32x4.shrU(get(v.bits), i32.const(index * 4));
      const legal = i32x4.eq(v128.and(shifted, lanes), lanes);
      return v128.store(get(v.row), v128.select(v128.load(get(v.row), offset), forbidden, legal), offset);
    };
    const word = (index: number): Code => [
      ...set(v.word, i32.load(get(v.words), index * 4)),
      // Nothing to do if all bits are 1.
      ...ifThen(i32.sub(get(v.word), i32.const(-1)), [
        ...set(v.bits, i32x4.splat(get(v.word))),
        ...[0, 1, 2, 3, 4, 5, 6, 7].flatMap((at) => vector(at, index * 128 + at * 16)),
      ]),
    ];
    return eachBlock(v, [
      ...Array.from({ length: blockWords }, (_, index) => word(index)).flat(),
      ...set(v.words, i32.add(get(v.words), i32.const(blockWords * 4))),
    ]);
  },
});
