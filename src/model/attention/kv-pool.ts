// Memory for keys and values: `numBlocks` blocks of `positionsPerBlock` positions for every layer. Allocated once; the
// operating system fills it lazily. A block has a stable logical number, which the scheduler uses, and a place in
// memory, which changes: the blocks that a decode step reads must lie side by side, so that the runtime reads them
// without a copy. Place 0 is the null block, which is always zero and never given out. Logical block i starts at place
// i + 1.

import type { ModelConfig } from "../checkpoint/model-config.ts";

/** One layer's keys and values of some blocks, in the layout of KvPool. */
export interface BlockMemory {
  keys: Float32Array;
  values: Float32Array;
}

export class KvPool {
  readonly numBlocks: number;
  readonly positionsPerBlock: number;
  /** Per layer: [places, kvHeads, positionsPerBlock, headDim]. */
  readonly keys: Float32Array[] = [];
  /** Per layer: [places, kvHeads, headDim, positionsPerBlock]: transposed, because the runtime multiplies that faster. */
  readonly values: Float32Array[] = [];
  /** Numbers in one block of one layer's keys (or values). */
  readonly blockElements: number;
  readonly #heads: number;
  readonly #headDim: number;
  readonly #placeOf: Int32Array;
  readonly #blockAt: Int32Array;
  readonly #wanted: Uint8Array;
  readonly #spare: Float32Array;

  constructor(config: ModelConfig, positionsPerBlock: number, numBlocks: number) {
    this.positionsPerBlock = positionsPerBlock;
    this.numBlocks = numBlocks;
    this.#heads = config.numKvHeads;
    this.#headDim = config.headDim;
    this.blockElements = config.numKvHeads * positionsPerBlock * config.headDim;
    for (let layer = 0; layer < config.numLayers; layer++) {
      this.keys.push(new Float32Array((numBlocks + 1) * this.blockElements));
      this.values.push(new Float32Array((numBlocks + 1) * this.blockElements));
    }
    this.#placeOf = Int32Array.from({ length: numBlocks }, (_, block) => block + 1);
    this.#blockAt = Int32Array.from({ length: numBlocks + 1 }, (_, place) => place - 1);
    this.#wanted = new Uint8Array(numBlocks);
    this.#spare = new Float32Array(this.blockElements);
  }

  place(block: number): number {
    return this.#placeOf[block]!;
  }

  /** Moves blocks so that exactly these lie at places 1 .. blocks.length, in any order. */
  bringTogether(blocks: readonly number[]): void {
    for (const block of blocks) this.#wanted[block] = 1;
    let candidate = 1;
    for (const block of blocks) {
      if (this.#placeOf[block]! <= blocks.length) continue;
      while (this.#wanted[this.#blockAt[candidate]!] === 1) candidate += 1;
      this.#swap(this.#placeOf[block]!, candidate);
    }
    for (const block of blocks) this.#wanted[block] = 0;
  }

  copyBlock(from: number, to: number): void {
    const [source, target] = [this.#placeOf[from]!, this.#placeOf[to]!];
    for (const memory of [...this.keys, ...this.values]) this.#move(memory, source, target);
  }

  /**
   * Stores one layer's key and value of one position, given as row `row` of [n, heads * headDim]. Clears a block that
   * begins: a mask hides what an earlier sequence left there, except NaN and infinities.
   */
  writeRow(
    layer: number,
    keys: Float32Array,
    values: Float32Array,
    row: number,
    position: number,
    blocks: Int32Array,
  ): void {
    const [heads, headDim, positionsPerBlock] = [this.#heads, this.#headDim, this.positionsPerBlock];
    const keyMemory = this.keys[layer]!;
    const valueMemory = this.values[layer]!;
    const slot = position % positionsPerBlock;
    const base = this.#placeOf[blocks[(position - slot) / positionsPerBlock]!]! * this.blockElements;
    if (slot === 0) {
      keyMemory.fill(0, base, base + this.blockElements);
      valueMemory.fill(0, base, base + this.blockElements);
    }
    for (let head = 0; head < heads; head++) {
      const source = (row * heads + head) * headDim;
      const keyTarget = base + (head * positionsPerBlock + slot) * headDim;
      let valueTarget = base + head * headDim * positionsPerBlock + slot;
      for (let d = 0; d < headDim; d++) {
        keyMemory[keyTarget + d] = keys[source + d]!;
        valueMemory[valueTarget] = values[source + d]!;
        valueTarget += positionsPerBlock;
      }
    }
  }

  /** The first positions of a block as rows: [2 * layers, count, heads, headDim], keys and values of each layer. */
  readRows(block: number, count: number): Float32Array {
    const [heads, headDim, positionsPerBlock] = [this.#heads, this.#headDim, this.positionsPerBlock];
    const base = this.#placeOf[block]! * this.blockElements;
    const rows = new Float32Array(2 * this.keys.length * count * heads * headDim);
    let at = 0;
    for (const [layer, keys] of this.keys.entries()) {
      for (let slot = 0; slot < count; slot++) {
        for (let head = 0; head < heads; head++, at += headDim) {
          const source = base + (head * positionsPerBlock + slot) * headDim;
          rows.set(keys.subarray(source, source + headDim), at);
        }
      }
      const values = this.values[layer]!;
      for (let slot = 0; slot < count; slot++) {
        for (let row = 0; row < heads * headDim; row++) rows[at++] = values[base + row * positionsPerBlock + slot]!;
      }
    }
    return rows;
  }

  /** Clears the positions of a block from `first` on: see writeRow. */
  clearFrom(block: number, first: number): void {
    const [heads, headDim, positionsPerBlock] = [this.#heads, this.#headDim, this.positionsPerBlock];
    const base = this.#placeOf[block]! * this.blockElements;
    for (const [layer, keys] of this.keys.entries()) {
      const values = this.values[layer]!;
      for (let head = 0; head < heads; head++) {
        const end = base + (head + 1) * positionsPerBlock * headDim;
        keys.fill(0, end - (positionsPerBlock - first) * headDim, end);
      }
      for (let row = 0; row < heads * headDim; row++) {
        values.fill(0, base + row * positionsPerBlock + first, base + (row + 1) * positionsPerBlock);
      }
    }
  }

  /** Stores one layer's keys and values of whole blocks. */
  writeBlocks(layer: number, blocks: Int32Array, { keys, values }: BlockMemory): void {
    const size = this.blockElements;
    for (const [i, block] of blocks.entries()) {
      const base = this.#placeOf[block]! * size;
      this.keys[layer]!.set(keys.subarray(i * size, (i + 1) * size), base);
      this.values[layer]!.set(values.subarray(i * size, (i + 1) * size), base);
    }
  }

  /** The memory of these blocks if they are adjacent and in order, as in a little-used cache; otherwise null. */
  inOrder(blocks: Int32Array): ((layer: number) => BlockMemory) | null {
    const first = blocks.length === 0 ? 0 : this.#placeOf[blocks[0]!]!;
    for (let i = 1; i < blocks.length; i++) {
      if (this.#placeOf[blocks[i]!]! !== first + i) return null;
    }
    const from = first * this.blockElements;
    const to = from + blocks.length * this.blockElements;
    return (layer) => ({
      keys: this.keys[layer]!.subarray(from, to),
      values: this.values[layer]!.subarray(from, to),
    });
  }

  /** Copies blocks, in this order. */
  collect(layer: number, blocks: Int32Array, { keys, values }: BlockMemory): void {
    for (const [i, block] of blocks.entries()) {
      const at = this.#placeOf[block]! * this.blockElements;
      keys.set(this.keys[layer]!.subarray(at, at + this.blockElements), i * this.blockElements);
      values.set(this.values[layer]!.subarray(at, at + this.blockElements), i * this.blockElements);
    }
  }

  #swap(a: number, b: number): void {
    for (const memory of [...this.keys, ...this.values]) {
      this.#spare.set(memory.subarray(a * this.blockElements, (a + 1) * this.blockElements));
      this.#move(memory, b, a);
      memory.set(this.#spare, b * this.blockElements);
    }
    const [blockA, blockB] = [this.#blockAt[a]!, this.#blockAt[b]!];
    this.#blockAt[a] = blockB;
    this.#blockAt[b] = blockA;
    this.#placeOf[blockA] = b;
    this.#placeOf[blockB] = a;
  }

  #move(memory: Float32Array, from: number, to: number): void {
    memory.copyWithin(to * this.blockElements, from * this.blockElements, (from + 1) * this.blockElements);
  }
}
