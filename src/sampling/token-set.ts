// Sets of tokens as bitsets (bit id & 31 of word id >>> 5), and forbidding what is not in one.

/** The bitset of some ids below `size`. */
export function tokenSet(ids: readonly number[], size: number): Int32Array {
  const set = new Int32Array(Math.ceil(size / 32));
  for (const id of ids) {
    if (id >= 0 && id < size) set[id >>> 5]! |= 1 << (id & 31);
  }
  return set;
}

/** Sets every entry whose bit is 0, or beyond the end of the set, to -Infinity. */
export function applyMask(values: Float32Array, legal: Int32Array): void {
  const words = Math.ceil(values.length / 32);
  let clearFrom = -1;
  for (let w = 0; w < words; w++) {
    const word = w < legal.length ? legal[w]! : 0;
    if (word === 0) {
      if (clearFrom < 0) clearFrom = w * 32;
      continue;
    }
    if (clearFrom >= 0) values.fill(Number.NEGATIVE_INFINITY, clearFrom, w * 32);
    clearFrom = -1;
    for (let illegal = ~word; illegal !== 0; illegal &= illegal - 1) {
      // Bits past the vocabulary address no entry, and writing there does nothing.
      values[w * 32 + 31 - Math.clz32(illegal & -illegal)] = Number.NEGATIVE_INFINITY;
    }
  }
  if (clearFrom >= 0) values.fill(Number.NEGATIVE_INFINITY, clearFrom);
}
