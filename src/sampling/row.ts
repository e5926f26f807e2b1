// One row of logits in the kernels' memory: loaded, edited in place, then searched and weighed. After `load` or any
// write to `values`, call `scan` before any method below it. All sequences of a thread share one row (see `sharedRow`),
// so its content lives only until the next `load`.

import { InvalidLogitsError } from "./errors.ts";
import { keyToFloat, sortKey } from "./float-order.ts";
import { BLOCK_ENTRIES } from "./kernels/parts.ts";
import { HISTOGRAM_BUCKETS } from "./kernels/search.ts";
import { weightRange } from "./kernels/weights.ts";
import type { RowLevel, RowMemory } from "./row-memory.ts";
import { rowMemory } from "./row-memory.ts";

export class LogitRow {
  readonly vocabSize: number;
  /** [vocabSize]; -Infinity = not allowed. */
  readonly values: Float32Array;
  /** The entries, and one level up the block maxima as a row of their own. */
  readonly entries: RowLevel;
  readonly maxima: RowLevel;
  /** The largest entry; -Infinity when nothing is allowed. Valid after `scan`. */
  max = Number.NEGATIVE_INFINITY;

  readonly #memory: RowMemory;
  #unitMass: number | null = null;

  constructor(vocabSize: number) {
    this.vocabSize = vocabSize;
    this.#memory = rowMemory(vocabSize);
    this.values = this.#memory.values;
    this.entries = this.#memory.entries;
    this.maxima = this.#memory.maxima;
  }

  /** Copies the first `vocabSize` logits. Does not change the source. */
  load(logits: Float32Array): void {
    if (logits.length < this.vocabSize) {
      throw new RangeError(`a row of ${logits.length} logits is shorter than the vocabulary (${this.vocabSize})`);
    }
    this.values.set(logits.length === this.vocabSize ? logits : logits.subarray(0, this.vocabSize));
  }

  /** Sets every entry whose bit is 0, or beyond the end of the set, to -Infinity. */
  allowOnly(legal: Int32Array): void {
    const { kernels, legal: words } = this.#memory;
    words.fill(0);
    words.set(legal.length <= words.length ? legal : legal.subarray(0, words.length));
    const { address, blocks, maxima } = this.entries;
    kernels.mask(address, blocks, maxima, words.byteOffset);
  }

  /** Finds the block maxima and `max`. Throws on NaN and +Infinity. */
  scan(): void {
    const { kernels, entries, maxima, topMaxima } = this.#memory;
    this.#unitMass = null;
    const invalid = kernels.scan(entries.address, entries.blocks, entries.maxima);
    if (invalid !== 0) throw new InvalidLogitsError("NaN");
    kernels.scan(maxima.address, maxima.blocks, maxima.maxima);
    let max = Number.NEGATIVE_INFINITY;
    for (const value of topMaxima) if (value > max) max = value;
    if (max === Number.POSITIVE_INFINITY) throw new InvalidLogitsError("+Infinity");
    this.max = max;
  }

  /** The lowest id among the largest entries. */
  argmax(): number {
    const block = this.#memory.blockMaxima.indexOf(this.max);
    return this.values.indexOf(this.max, block * BLOCK_ENTRIES);
  }

  /** Entries below this have weight 0 at the given temperature. */
  weightlessBelow(temperature: number): number {
    return Math.fround(this.max - weightRange * temperature);
  }

  /** Sum of e^(entry - max) over the row: the denominator of its softmax. */
  unitMass(): number {
    return this.#unitMass ?? this.weigh(1, this.weightlessBelow(1));
  }

  /** Weighs the entries >= floor (at least `weightlessBelow`): e^((entry - max) / temperature). Returns the sum. */
  weigh(temperature: number, floor: number): number {
    const { kernels, weights, blockSums } = this.#memory;
    const { address, blocks, maxima } = this.entries;
    const toWeights = weights.byteOffset - address;
    const octaves = Math.LOG2E / temperature;
    const sums = blockSums.byteOffset;
    const total = kernels.weigh(address, blocks, maxima, toWeights, sums, floor, this.max, octaves);
    if (temperature === 1 && floor === this.weightlessBelow(1)) this.#unitMass = total;
    return total;
  }

  /** Sums the weights just computed for the entries >= cut. The cut must not be below their floor. */
  massFrom(cut: number): number {
    const { kernels, weights, blockSums } = this.#memory;
    const { address, blocks, maxima } = this.entries;
    return kernels.sumAtLeast(address, blocks, maxima, weights.byteOffset - address, blockSums.byteOffset, cut);
  }

  /**
   * The token on which `target`, a part of the last sum, falls when the weights of the entries >= cut are laid end to end by
   * id. If rounding leaves a rest, it is the last token.
   */
  tokenAt(target: number, cut: number): number {
    const { values, weights, blockSums } = this.#memory;
    const block = placeOf(target, blockSums.length, (index) => blockSums[index]!);
    const firstId = block.index * BLOCK_ENTRIES;
    const weightAt = (index: number) => (values[firstId + index]! >= cut ? weights[firstId + index]! : 0);
    return firstId + placeOf(block.rest, BLOCK_ENTRIES, weightAt).index;
  }

  /** The weight of an entry that was weighed. */
  weightOf(id: number): number {
    return this.#memory.weights[id]!;
  }

  /** Counts the entries (of the row or of its maxima) with keys in hiKey - span .. hiKey in buckets of 2^shift keys. */
  histogram(level: RowLevel, hiKey: number, span: number, shift: number): void {
    const { kernels, counts } = this.#memory;
    const { address, blocks, maxima } = level;
    const [cut, top] = [keyToFloat(hiKey - span), keyToFloat(hiKey)];
    counts.fill(0);
    kernels.histogram(address, blocks, maxima, counts.byteOffset, hiKey, shift, cut, top);
  }

  /**
   * The bucket in which the last `histogram` found the n-th largest entry (n >= 1; bucket 0 is the highest), and how many
   * entries it found in the buckets above. null if it found fewer than n.
   */
  bucketOf(n: number): { bucket: number; above: number } | null {
    const { kernels, counts, above } = this.#memory;
    const bucket = kernels.findBucket(counts.byteOffset, n, above.byteOffset);
    return bucket === HISTOGRAM_BUCKETS ? null : { bucket, above: above[0]! };
  }

  /** Ids of the entries with lowKey <= key <= highKey, ascending, at most `limit`. A view, valid until the next call. */
  gather(lowKey: number, highKey: number, limit: number): Int32Array {
    const { kernels, ids } = this.#memory;
    if (limit <= 0 || lowKey > highKey) return ids.subarray(0, 0);
    const { address, blocks, maxima } = this.entries;
    const [span, cut] = [highKey - lowKey, keyToFloat(lowKey)];
    const found = kernels.gather(address, blocks, maxima, highKey, span, cut, ids.byteOffset, limit);
    return ids.subarray(0, found);
  }

  /** How many entries are >= value. */
  countAtLeast(value: number): number {
    if (value === Number.NEGATIVE_INFINITY) return this.vocabSize;
    const { address, blocks, maxima } = this.entries;
    return this.#memory.kernels.countAtLeast(address, blocks, maxima, value);
  }

  /** How many entries with lower ids are equal to this one. */
  equalBefore(id: number): number {
    const { kernels, entries } = this.#memory;
    const value = this.values[id]!;
    const blocks = Math.floor(id / BLOCK_ENTRIES);
    const before = (low: number) =>
      blocks === 0 ? 0 : kernels.countAtLeast(entries.address, blocks, entries.maxima, low);
    let count = before(value) - before(keyToFloat(sortKey(value) + 1));
    for (let other = blocks * BLOCK_ENTRIES; other < id; other++) if (this.values[other] === value) count++;
    return count;
  }
}

/**
 * Where `target` falls when widths are laid end to end: the index, and the distance from its beginning. Beyond the end, the
 * last width that is not 0.
 */
function placeOf(target: number, count: number, widthAt: (index: number) => number): { index: number; rest: number } {
  let before = 0;
  let place = { index: 0, rest: target };
  for (let index = 0; index < count; index++) {
    const width = widthAt(index);
    if (width === 0) continue;
    place = { index, rest: target - before };
    if (place.rest < width) break;
    before += width;
  }
  return place;
}

let shared: LogitRow | null = null;

/** The row of this thread: scratch space, valid until somebody else loads it. */
export function sharedRow(vocabSize: number): LogitRow {
  if (shared?.vocabSize !== vocabSize) shared = new LogitRow(vocabSize);
  return shared;
}
