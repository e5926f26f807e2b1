// Applies the merges of a BPE model to one word. Symbols are token ids. Merges happen in the order of Hugging Face's
// tokenizers: lowest rank first, leftmost on ties. Short words are scanned. Long words use a heap, so a megabyte without a
// space takes n log n time.

const SCAN_LIMIT = 32;
/** Heap keys are rank * positions + position, exact in a double. */
const MAX_POSITIONS = 2 ** 30;

/** Two ids that become one. Lower ranks first. */
export interface Merge {
  left: number;
  right: number;
  merged: number;
  rank: number;
}

export class MergeTable {
  readonly #mask: number;
  // Open addressing over the pair (left, right); left -2 marks a free slot.
  readonly #left: Int32Array;
  readonly #right: Int32Array;
  readonly #rank: Int32Array;
  readonly #merged: Int32Array;

  /** Of merges of the same pair the first counts. */
  constructor(merges: readonly Merge[]) {
    let size = 16;
    while (size < merges.length * 2) size *= 2;
    this.#mask = size - 1;
    this.#left = new Int32Array(size).fill(-2);
    this.#right = new Int32Array(size);
    this.#rank = new Int32Array(size);
    this.#merged = new Int32Array(size);
    for (const { left, right, merged, rank } of merges) {
      const slot = this.#slot(left, right);
      if (this.#left[slot] !== -2) continue;
      this.#left[slot] = left;
      this.#right[slot] = right;
      this.#rank[slot] = rank;
      this.#merged[slot] = merged;
    }
  }

  /** Merges `symbols[0..length)` in place and gives the new length. */
  apply(symbols: Int32Array, length: number): number {
    if (length < 2) return length;
    if (length >= MAX_POSITIONS) throw new RangeError(`A word of ${length} symbols is too long to encode.`);
    return length <= SCAN_LIMIT ? this.#scan(symbols, length) : this.#heap(symbols, length);
  }

  #scan(symbols: Int32Array, length: number): number {
    for (;;) {
      let bestRank = -1;
      let bestAt = 0;
      let bestSlot = 0;
      for (let at = 0; at + 1 < length; at++) {
        const slot = this.#slot(symbols[at]!, symbols[at + 1]!);
        if (this.#left[slot] === -2) continue;
        const rank = this.#rank[slot]!;
        if (bestRank < 0 || rank < bestRank) {
          bestRank = rank;
          bestAt = at;
          bestSlot = slot;
        }
      }
      if (bestRank < 0) return length;
      symbols[bestAt] = this.#merged[bestSlot]!;
      symbols.copyWithin(bestAt + 1, bestAt + 2, length);
      length--;
    }
  }

  #heap(symbols: Int32Array, length: number): number {
    // A doubly linked list over positions; a merge keeps the left position and unlinks the right one.
    const next = new Int32Array(length);
    const previous = new Int32Array(length);
    const dead = new Uint8Array(length);
    const queue = new MinHeap(length);
    const offer = (at: number): void => {
      if (at < 0 || next[at] === length) return;
      const slot = this.#slot(symbols[at]!, symbols[next[at]!]!);
      if (this.#left[slot] !== -2) queue.push(this.#rank[slot]! * MAX_POSITIONS + at);
    };
    for (let at = 0; at < length; at++) {
      next[at] = at + 1;
      previous[at] = at - 1;
    }
    for (let at = 0; at + 1 < length; at++) offer(at);
    while (queue.size > 0) {
      const key = queue.pop();
      const rank = Math.floor(key / MAX_POSITIONS);
      const at = key - rank * MAX_POSITIONS;
      const right = next[at]!;
      if (dead[at] === 1 || right === length) continue;
      const slot = this.#slot(symbols[at]!, symbols[right]!);
      // A stale entry: one of the two symbols has changed since it was queued.
      if (this.#left[slot] === -2 || this.#rank[slot] !== rank) continue;
      symbols[at] = this.#merged[slot]!;
      dead[right] = 1;
      const after = next[right]!;
      next[at] = after;
      if (after < length) previous[after] = at;
      offer(previous[at]!);
      offer(at);
    }
    let kept = 0;
    for (let at = 0; at < length; at = next[at]!) symbols[kept++] = symbols[at]!;
    return kept;
  }

  /** The slot of the pair, or the free slot where it would be. */
  #slot(left: number, right: number): number {
    const hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    let slot = (hash ^ (hash >>> 15)) & this.#mask;
    while (this.#left[slot] !== -2 && (this.#left[slot] !== left || this.#right[slot] !== right)) {
      slot = (slot + 1) & this.#mask;
    }
    return slot;
  }
}

class MinHeap {
  #keys: Float64Array;
  size = 0;

  constructor(capacity: number) {
    this.#keys = new Float64Array(Math.max(16, capacity));
  }

  push(key: number): void {
    if (this.size === this.#keys.length) {
      const grown = new Float64Array(this.#keys.length * 2);
      grown.set(this.#keys);
      this.#keys = grown;
    }
    const keys = this.#keys;
    let at = this.size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[at] = keys[parent]!;
      at = parent;
    }
    keys[at] = key;
  }

  /** Only while size > 0. */
  pop(): number {
    const keys = this.#keys;
    const top = keys[0]!;
    const last = keys[--this.size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && keys[child + 1]! < keys[child]!) child++;
      if (keys[child]! >= last) break;
      keys[at] = keys[child]!;
      at = child;
    }
    keys[at] = last;
    return top;
  }
}
