// Sets of tokens as bitsets: bit id & 31 of word id >>> 5.

/** The bitset of some ids below `size`. */
export function tokenSet(ids: readonly number[], size: number): Int32Array {
  const set = new Int32Array(Math.ceil(size / 32));
  for (const id of ids) {
    if (id >= 0 && id < size) set[id >>> 5]! |= 1 << (id & 31);
  }
  return set;
}
