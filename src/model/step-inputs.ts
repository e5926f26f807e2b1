// Fills the inputs of one run of the serving graph. decoder-graph.ts and attention/inputs.ts say what they mean. Small
// arrays are made for each run; cached keys and values are views of the pool.

import { bools, type Feeds, floats, int64s } from "../graph/session.ts";
import { blockPlaces } from "./attention/blockwise-attention.ts";
import { PART_BOUNDS } from "./attention/inputs.ts";
import { PREFILL_PARTS, partEnds } from "./attention/prefill-pieces.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import type { Embedding } from "./embedding.ts";
import type { BlockMemory, KvPool } from "./kv-pool.ts";
import type { LoraSlots } from "./lora/lora-slots.ts";
import type { RotaryTable } from "./rotary-table.ts";
import type { Chunk } from "./runner.ts";

export interface StepParts {
  config: ModelConfig;
  pool: KvPool;
  embedding: Embedding;
  /** One per distinct RoPE. */
  rotary: readonly RotaryTable[];
  adapters: LoraSlots;
  /** See attention/prefill-pieces.ts. */
  shortestPart: number;
  /** Whether this many rows, with or without an adapter, would be computed in a way that gives one of them other bits. */
  differAlone(rows: number, adapted: boolean): boolean;
}

export class StepInputs {
  readonly #parts: StepParts;
  readonly #windows: readonly (number | null)[];
  readonly #counting = new Counting();
  /** Scratch memory for the prefill's past, per layer. Grows to the longest past so far. */
  #pastKeys: Float32Array[] = [];
  #pastValues: Float32Array[] = [];

  constructor(parts: StepParts) {
    this.#parts = parts;
    this.#windows = [...new Set(parts.config.layers.map((layer) => layer.window))];
  }

  /** Rows: the decoding chunks in order, then the prefill chunk. */
  prepare(decoding: readonly Chunk[], prefill: Chunk | null, withAdapters: boolean): Feeds {
    const chunks = prefill === null ? decoding : [...decoding, prefill];
    const feeds: Feeds = {
      decode_count: int64s(BigInt64Array.of(BigInt(decoding.length)), [1]),
      has_prefill: bools(Uint8Array.of(prefill === null ? 0 : 1), []),
    };
    this.#addRows(feeds, chunks);
    this.#addDecode(feeds, decoding);
    this.#addPrefill(feeds, prefill, decoding.length);
    if (withAdapters) this.#parts.adapters.addFeeds(feeds, chunks);
    return feeds;
  }

  #addRows(feeds: Feeds, chunks: readonly Chunk[]): void {
    const { config, embedding, rotary } = this.#parts;
    const n = chunks.reduce((sum, chunk) => sum + chunk.tokens.length, 0);
    const x = new Float32Array(n * config.hiddenSize);
    const cos = rotary.map(({ width }) => new Float32Array(n * width));
    const sin = rotary.map(({ width }) => new Float32Array(n * width));
    const wanted: bigint[] = [];
    let adapted = false;
    let row = 0;
    for (const chunk of chunks) {
      const count = chunk.tokens.length;
      for (let i = 0; i < count; i++) embedding.copyTo(chunk.tokens[i]!, x, row + i, chunk.start + i);
      for (const [i, table] of rotary.entries()) table.copyTo(chunk.start, count, cos[i]!, sin[i]!, row);
      for (let i = count - wantedRows(chunk); i < count; i++) wanted.push(BigInt(row + i));
      adapted ||= wantedRows(chunk) > 0 && chunk.adapterSlot !== 0;
      row += count;
    }
    // Nobody reads these rows. The graph needs at least one, and a lone row may need a companion.
    if (wanted.length === 0 || this.#parts.differAlone(wanted.length, adapted)) wanted.push(0n);
    feeds.x = floats(x, [n, 1, config.hiddenSize]);
    feeds.rows = int64s(this.#counting.first(n), [n, 1]);
    feeds.wanted = int64s(BigInt64Array.from(wanted), [wanted.length]);
    for (const [i, { width }] of rotary.entries()) {
      feeds[`cos.${i}`] = floats(cos[i]!, [n, width]);
      feeds[`sin.${i}`] = floats(sin[i]!, [n, width]);
    }
  }

  #addDecode(feeds: Feeds, decoding: readonly Chunk[]): void {
    const { config, pool } = this.#parts;
    const { positionsPerBlock } = pool;
    const count = decoding.length;
    const held = decoding.map(({ start, blocks }) => blocks.subarray(0, Math.ceil(start / positionsPerBlock)));
    const active: number[] = [];
    for (const blocks of held) for (const block of blocks) active.push(block);
    pool.bringTogether(active);

    // The null block is there if there are rows that may point at it.
    const total = count === 0 ? 0 : active.length + 1;
    const depth = Math.max(1, ...held.map((blocks) => blocks.length));
    const owner = new BigInt64Array(total);
    const table = new BigInt64Array(depth * count);
    const masks = this.#windows.map(() => new Float32Array(total * positionsPerBlock));
    for (const mask of masks) mask.fill(-Infinity, 0, positionsPerBlock);
    for (let row = 0; row < count; row++) {
      const { start } = decoding[row]!;
      const blocks = held[row]!;
      for (let i = 0; i < blocks.length; i++) {
        const place = pool.place(blocks[i]!);
        const first = i * positionsPerBlock;
        owner[place] = BigInt(row);
        table[i * count + row] = BigInt(place);
        for (let w = 0; w < masks.length; w++) {
          maskPositions(masks[w]!, place * positionsPerBlock, first, positionsPerBlock, start, this.#windows[w]!);
        }
      }
    }
    const { numKvHeads, headDim } = config;
    feeds.owner = int64s(owner, [total]);
    feeds.table = int64s(table, [depth, count]);
    for (const [w, window] of this.#windows.entries()) {
      feeds[`mask.${window ?? "full"}`] = floats(masks[w]!, [total, 1, 1, positionsPerBlock]);
    }
    const size = total * pool.blockElements;
    for (let layer = 0; layer < config.numLayers; layer++) {
      const shape = [total, numKvHeads, positionsPerBlock, headDim];
      feeds[`keys.${layer}`] = floats(pool.keys[layer]!.subarray(0, size), shape);
      feeds[`values.${layer}`] = floats(pool.values[layer]!.subarray(0, size), [
        total,
        numKvHeads,
        headDim,
        positionsPerBlock,
      ]);
    }
  }

  #addPrefill(feeds: Feeds, prefill: Chunk | null, firstRow: number): void {
    const { config, pool } = this.#parts;
    const { positionsPerBlock } = pool;
    const start = prefill?.start ?? 0;
    const begun = start % positionsPerBlock;
    const past = (start - begun) / positionsPerBlock;
    const count = prefill?.tokens.length ?? 0;
    const ends = count === 0 ? [] : partEnds(begun, count, positionsPerBlock, this.#parts.shortestPart);
    const bounds = new BigInt64Array(PART_BOUNDS);
    // Parts are counted from the chunk's end, positions from the start of its first block.
    for (let part = 0; part < PREFILL_PARTS; part++) {
      const to = ends.at(-1 - part) ?? begun;
      const from = ends.at(-2 - part) ?? begun;
      const seen = to === from ? 0 : past + Math.ceil(to / positionsPerBlock);
      bounds[part] = BigInt(firstRow + from - begun);
      if (part > 0) bounds[PREFILL_PARTS - 1 + part] = BigInt(seen);
      this.#addPartMasks(feeds, part, seen, start - begun + from, to - from);
    }
    bounds[PART_BOUNDS - 1] = BigInt(prefill === null ? 0 : wantedRows(prefill));
    feeds.part_bounds = int64s(bounds, [bounds.length]);
    const { numKvHeads, headDim } = config;
    const places = blockPlaces(firstRow, count, positionsPerBlock, begun);
    feeds.places = int64s(places, [places.length]);
    const rows = begun === 0 ? new Float32Array(0) : pool.readRows(prefill!.blocks[past]!, begun);
    feeds.has_begun = bools(Uint8Array.of(begun === 0 ? 0 : 1), []);
    feeds.begun = floats(rows, [2 * config.numLayers, begun, numKvHeads, 1, headDim]);
    const pastOf = this.#pastBlocks(prefill?.blocks.subarray(0, past) ?? new Int32Array(0));
    for (let layer = 0; layer < config.numLayers; layer++) {
      const { keys, values } = pastOf(layer);
      feeds[`past_keys.${layer}`] = floats(keys, [past, numKvHeads, positionsPerBlock, headDim]);
      feeds[`past_values.${layer}`] = floats(values, [past, numKvHeads, headDim, positionsPerBlock]);
    }
  }

  /** Masks for `count` tokens from position `first` on, over `seen` blocks. */
  #addPartMasks(feeds: Feeds, part: number, seen: number, first: number, count: number): void {
    const { positionsPerBlock } = this.#parts.pool;
    for (const window of this.#windows) {
      const mask = new Float32Array(seen * count * positionsPerBlock);
      for (let block = 0; block < seen; block++) {
        for (let i = 0; i < count; i++) {
          const at = (block * count + i) * positionsPerBlock;
          maskPositions(mask, at, block * positionsPerBlock, positionsPerBlock, first + i, window);
        }
      }
      feeds[`part_mask.${window ?? "full"}.${part}`] = floats(mask, [seen, 1, 1, count, positionsPerBlock]);
    }
  }

  /** These blocks in this order. They are read in place if they are stored in it. */
  #pastBlocks(blocks: Int32Array): (layer: number) => BlockMemory {
    const { pool } = this.#parts;
    const size = blocks.length * pool.blockElements;
    const inPlace = pool.inOrder(blocks);
    if (inPlace !== null) return inPlace;
    this.#reserve(size);
    return (layer) => {
      const past = {
        keys: this.#pastKeys[layer]!.subarray(0, size),
        values: this.#pastValues[layer]!.subarray(0, size),
      };
      pool.collect(layer, blocks, past);
      return past;
    };
  }

  #reserve(elements: number): void {
    const { numLayers } = this.#parts.config;
    if (this.#pastKeys.length === numLayers && this.#pastKeys[0]!.length >= elements) return;
    const size = Math.max(elements, 2 * (this.#pastKeys[0]?.length ?? 0));
    this.#pastKeys = Array.from({ length: numLayers }, () => new Float32Array(size));
    this.#pastValues = Array.from({ length: numLayers }, () => new Float32Array(size));
  }
}

/** How many rows of logits a chunk asks for. */
export function wantedRows(chunk: Chunk): number {
  if (chunk.logits === "none") return 0;
  return chunk.logits === "all" ? chunk.tokens.length : 1;
}

/**
 * Masks one block, positions first .. first + positionsPerBlock - 1, at mask[at ...] for the token at position `end`: hides
 * that position, all later ones, and those outside the window, in which the token itself takes one place.
 */
function maskPositions(
  mask: Float32Array,
  at: number,
  first: number,
  positionsPerBlock: number,
  end: number,
  window: number | null,
): void {
  const tooOld = window === null ? 0 : Math.max(0, end - window + 1 - first);
  if (tooOld > 0) mask.fill(-Infinity, at, at + Math.min(tooOld, positionsPerBlock));
  const beyond = Math.max(0, end - first);
  if (beyond < positionsPerBlock) mask.fill(-Infinity, at + beyond, at + positionsPerBlock);
}

/** 0n, 1n, 2n, …: one array that grows. */
class Counting {
  #values = new BigInt64Array(0);

  first(count: number): BigInt64Array {
    if (count > this.#values.length) this.#values = BigInt64Array.from({ length: 2 * count }, (_, i) => BigInt(i));
    return this.#values.subarray(0, count);
  }
}
