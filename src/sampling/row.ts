// One row of logits in the kernels' memory: loaded, edited in place by the processors, then searched and weighed.
// Contract: after `load` or any write to `values`, call `scan` before anything below it. A row is shared by all
// sequences of a thread (see `sharedRow`), so its content lives only until the next `load`.

import { InvalidLogitsError } from "./errors.ts";
import { keyToFloat } from "./float-order.ts";
import type { Kernels } from "./kernels/kernels.ts";
import { instantiateKernels } from "./kernels/kernels.ts";
import {
  blockEntries,
  blockWeightsAddress,
  countAddress,
  firstFreeAddress,
  histogramBuckets,
  weightRange,
} from "./kernels/parts.ts";

/** Where a row (or the row of its block maxima) and its block maxima lie in memory. */
export interface RowLevel {
  address: number;
  blocks: number;
  maxima: number;
}

const wholeBlocks = (entries: number) => Math.ceil(entries / blockEntries);

export class LogitRow {
  readonly vocabSize: number;
  /** [vocabSize]; -Infinity = not allowed. */
  readonly values: Float32Array;
  /** The entries, and one level up the block maxima as a row of their own. */
  readonly entries: RowLevel;
  readonly maxima: RowLevel;
  /** What the last `histogram` found, bucket 0 highest. */
  readonly bucketCount: Int32Array;
  /** The largest entry; -Infinity when nothing is allowed. Valid after `scan`. */
  max = Number.NEGATIVE_INFINITY;

  readonly #kernels: Kernels;
  readonly #maximaValues: Float32Array;
  readonly #topMaxima: Float32Array;
  readonly #blockSums: Float64Array;
  readonly #blockWeights: Float32Array;
  readonly #ids: Int32Array;
  #unitMass: number | null = null;

  constructor(vocabSize: number) {
    const blocks = wholeBlocks(vocabSize);
    const topBlocks = wholeBlocks(blocks);
    let end = firstFreeAddress;
    const reserve = (bytes: number) => {
      const address = end;
      end += bytes;
      return address;
    };
    const rowAddress = reserve(blocks * blockEntries * 4);
    const maximaAddress = reserve(topBlocks * blockEntries * 4);
    const topAddress = reserve(wholeBlocks(topBlocks) * blockEntries * 4);
    const sumsAddress = reserve(blocks * 8);
    const idsAddress = reserve(blocks * blockEntries * 4);
    const { kernels, memory } = instantiateKernels(end);
    const { buffer } = memory;
    new Float32Array(buffer, rowAddress, blocks * blockEntries).fill(Number.NEGATIVE_INFINITY);
    new Float32Array(buffer, maximaAddress, topBlocks * blockEntries).fill(Number.NEGATIVE_INFINITY);

    this.#kernels = kernels;
    this.vocabSize = vocabSize;
    this.entries = { address: rowAddress, blocks, maxima: maximaAddress };
    this.maxima = { address: maximaAddress, blocks: topBlocks, maxima: topAddress };
    this.values = new Float32Array(buffer, rowAddress, vocabSize);
    this.#maximaValues = new Float32Array(buffer, maximaAddress, blocks);
    this.#topMaxima = new Float32Array(buffer, topAddress, topBlocks);
    this.#blockSums = new Float64Array(buffer, sumsAddress, blocks);
    this.#ids = new Int32Array(buffer, idsAddress, blocks * blockEntries);
    this.#blockWeights = new Float32Array(buffer, blockWeightsAddress, blockEntries);
    this.bucketCount = new Int32Array(buffer, countAddress, histogramBuckets + 1);
  }

  /** Copies the first `vocabSize` logits in; the source stays as it is. */
  load(logits: Float32Array): void {
    if (logits.length < this.vocabSize) {
      throw new RangeError(`a row of ${logits.length} logits is shorter than the vocabulary (${this.vocabSize})`);
    }
    this.values.set(logits.length === this.vocabSize ? logits : logits.subarray(0, this.vocabSize));
  }

  /** Finds the block maxima and `max`. Throws on NaN and +Infinity. */
  scan(): void {
    const { entries, maxima } = this;
    this.#unitMass = null;
    if (this.#kernels.scan(entries.address, entries.blocks, entries.maxima) !== 0) throw new InvalidLogitsError("NaN");
    this.#kernels.scan(maxima.address, maxima.blocks, maxima.maxima);
    let max = Number.NEGATIVE_INFINITY;
    for (const value of this.#topMaxima) if (value > max) max = value;
    if (max === Number.POSITIVE_INFINITY) throw new InvalidLogitsError("+Infinity");
    this.max = max;
  }

  /** The lowest id among the largest entries. */
  argmax(): number {
    const block = this.#maximaValues.indexOf(this.max);
    return this.values.indexOf(this.max, block * blockEntries);
  }

  /** Entries below this weigh nothing at the given temperature. */
  weightlessBelow(temperature: number): number {
    return Math.fround(this.max - weightRange * temperature);
  }

  /** Sum of e^(entry - max) over the row: the denominator of its softmax. */
  unitMass(): number {
    return this.#unitMass ?? this.mass(1, this.weightlessBelow(1));
  }

  /** Sum of the weights e^((entry - max) / temperature) of the entries >= cut, which is not below `weightlessBelow`. */
  mass(temperature: number, cut: number): number {
    const { address, blocks, maxima } = this.entries;
    const sums = this.#blockSums.byteOffset;
    const total = this.#kernels.weigh(address, blocks, maxima, sums, this.max, 1 / temperature, cut);
    if (temperature === 1 && cut === this.weightlessBelow(1)) this.#unitMass = total;
    return total;
  }

  /**
   * The token that `target`, a part of the mass just computed with the same arguments, falls on when the weights of
   * the entries >= cut are laid end to end by id.
   */
  tokenAt(target: number, temperature: number, cut: number): number {
    const block = positionOf(target, this.#blockSums);
    let rest = target;
    for (let b = 0; b < block; b++) rest -= this.#blockSums[b]!;
    return block * blockEntries + positionOf(rest, this.#weighBlock(block, temperature, cut));
  }

  /** Weight of one entry, exactly as `mass` counts it. */
  weightOf(id: number, temperature: number): number {
    return this.#weighBlock(Math.floor(id / blockEntries), temperature, this.values[id]!)[id % blockEntries]!;
  }

  /** Counts the entries (of the row or of its maxima) with keys in hiKey - span .. hiKey in buckets of 2^shift keys. */
  histogram(level: RowLevel, hiKey: number, span: number, shift: number): void {
    this.bucketCount.fill(0);
    const { address, blocks, maxima } = level;
    this.#kernels.histogram(address, blocks, maxima, hiKey, span, shift, keyToFloat(hiKey - span));
  }

  /** Ids of the entries with lowKey <= key <= highKey, ascending, at most `limit`; a view until the next call. */
  gather(lowKey: number, highKey: number, limit: number): Int32Array {
    if (limit <= 0 || lowKey > highKey) return this.#ids.subarray(0, 0);
    const { address, blocks, maxima } = this.entries;
    const span = highKey - lowKey;
    const cut = keyToFloat(lowKey);
    const found = this.#kernels.gather(address, blocks, maxima, highKey, span, cut, this.#ids.byteOffset, limit);
    return this.#ids.subarray(0, found);
  }

  /** How many entries are >= value. */
  countAtLeast(value: number): number {
    if (value === Number.NEGATIVE_INFINITY) return this.vocabSize;
    const { address, blocks, maxima } = this.entries;
    return this.#kernels.countAtLeast(address, blocks, maxima, value);
  }

  #weighBlock(block: number, temperature: number, cut: number): Float32Array {
    this.#kernels.weighBlock(this.entries.address + block * blockEntries * 4, this.max, 1 / temperature, cut);
    return this.#blockWeights;
  }
}

/** Index of the weight that `target` falls on when they are laid end to end; what rounding leaves over: the last. */
function positionOf(target: number, weights: Float32Array | Float64Array): number {
  let rest = target;
  let position = 0;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!;
    if (weight === 0) continue;
    position = i;
    if (rest < weight) break;
    rest -= weight;
  }
  return position;
}

let shared: LogitRow | null = null;

/** The row of this thread: scratch space, valid until the next call of anything that loads it. */
export function sharedRow(vocabSize: number): LogitRow {
  if (shared?.vocabSize !== vocabSize) shared = new LogitRow(vocabSize);
  return shared;
}
