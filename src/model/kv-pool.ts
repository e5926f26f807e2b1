// Memory of keys and values: `numBlocks` blocks of `blockSize` positions for every layer, allocated once, filled lazily
// by the operating system. Blocks have stable logical numbers (what the scheduler holds) and a place in memory that
// moves: the blocks that a decode step reads must lie side by side, so that the runtime reads them without a copy.
// Place 0 is the null block, always zero and never handed out; logical block i starts at place i + 1.

import type { ModelConfig } from "./checkpoint/model-config.ts";

export class KvPool {
  readonly numBlocks: number;
  readonly blockSize: number;
  /** Per layer: [places, kvHeads, blockSize, headDim]. */
  readonly keys: Float32Array[] = [];
  /** Per layer: [places, kvHeads, headDim, blockSize]: transposed, the form in which the runtime multiplies fastest. */
  readonly values: Float32Array[] = [];
  /** Numbers in one block of one layer's keys (or values). */
  readonly blockElements: number;
  private readonly heads: number;
  private readonly headDim: number;
  private readonly placeOf: Int32Array;
  private readonly blockAt: Int32Array;
  private readonly wanted: Uint8Array;
  private readonly spare: Float32Array;

  constructor(config: ModelConfig, blockSize: number, numBlocks: number) {
    this.blockSize = blockSize;
    this.numBlocks = numBlocks;
    this.heads = config.numKvHeads;
    this.headDim = config.headDim;
    this.blockElements = config.numKvHeads * blockSize * config.headDim;
    for (let layer = 0; layer < config.numLayers; layer++) {
      this.keys.push(new Float32Array((numBlocks + 1) * this.blockElements));
      this.values.push(new Float32Array((numBlocks + 1) * this.blockElements));
    }
    this.placeOf = Int32Array.from({ length: numBlocks }, (_, block) => block + 1);
    this.blockAt = Int32Array.from({ length: numBlocks + 1 }, (_, place) => place - 1);
    this.wanted = new Uint8Array(numBlocks);
    this.spare = new Float32Array(this.blockElements);
  }

  /** Bytes of one block over all layers: what a KV budget is divided by. */
  static bytesPerBlock(config: ModelConfig, blockSize: number): number {
    return 2 * config.numLayers * config.numKvHeads * blockSize * config.headDim * Float32Array.BYTES_PER_ELEMENT;
  }

  place(block: number): number {
    return this.placeOf[block]!;
  }

  /** Moves blocks so that exactly these lie at places 1 .. blocks.length, in any order. */
  bringTogether(blocks: readonly number[]): void {
    for (const block of blocks) this.wanted[block] = 1;
    let candidate = 1;
    for (const block of blocks) {
      if (this.placeOf[block]! <= blocks.length) continue;
      while (this.wanted[this.blockAt[candidate]!] === 1) candidate += 1;
      this.swap(this.placeOf[block]!, candidate);
    }
    for (const block of blocks) this.wanted[block] = 0;
  }

  copyBlock(from: number, to: number): void {
    const [source, target] = [this.placeOf[from]!, this.placeOf[to]!];
    for (const memory of [...this.keys, ...this.values]) this.move(memory, source, target);
  }

  /**
   * Stores one layer's keys and values of consecutive positions. rows: [n, heads * headDim] from row `first` on. A block
   * that begins is cleared: what an earlier sequence left there is masked, but a mask does not hide what is no number.
   */
  write(
    layer: number,
    keys: Float32Array,
    values: Float32Array,
    first: number,
    start: number,
    blocks: Int32Array,
    count: number,
  ): void {
    const { heads, headDim, blockSize } = this;
    const width = heads * headDim;
    const keyMemory = this.keys[layer]!;
    const valueMemory = this.values[layer]!;
    for (let i = 0; i < count; i++) {
      const position = start + i;
      const slot = position % blockSize;
      const base = this.placeOf[blocks[(position - slot) / blockSize]!]! * this.blockElements;
      const row = (first + i) * width;
      if (slot === 0 && i + blockSize > count) {
        keyMemory.fill(0, base, base + this.blockElements);
        valueMemory.fill(0, base, base + this.blockElements);
      }
      for (let head = 0; head < heads; head++) {
        const source = row + head * headDim;
        const keyTarget = base + (head * blockSize + slot) * headDim;
        let valueTarget = base + head * headDim * blockSize + slot;
        for (let d = 0; d < headDim; d++) {
          keyMemory[keyTarget + d] = keys[source + d]!;
          valueMemory[valueTarget] = values[source + d]!;
          valueTarget += blockSize;
        }
      }
    }
  }

  /** Copies blocks, in this order, to the start of `keys` and `values`. */
  collect(layer: number, blocks: Int32Array, count: number, keys: Float32Array, values: Float32Array): void {
    for (let i = 0; i < count; i++) {
      const at = this.placeOf[blocks[i]!]! * this.blockElements;
      keys.set(this.keys[layer]!.subarray(at, at + this.blockElements), i * this.blockElements);
      values.set(this.values[layer]!.subarray(at, at + this.blockElements), i * this.blockElements);
    }
  }

  private swap(a: number, b: number): void {
    for (const memory of [...this.keys, ...this.values]) {
      this.spare.set(memory.subarray(a * this.blockElements, (a + 1) * this.blockElements));
      this.move(memory, b, a);
      memory.set(this.spare, b * this.blockElements);
    }
    const [blockA, blockB] = [this.blockAt[a]!, this.blockAt[b]!];
    this.blockAt[a] = blockB;
    this.blockAt[b] = blockA;
    this.placeOf[blockA] = b;
    this.placeOf[blockB] = a;
  }

  private move(memory: Float32Array, from: number, to: number): void {
    memory.copyWithin(to * this.blockElements, from * this.blockElements, (from + 1) * this.blockElements);
  }
}
