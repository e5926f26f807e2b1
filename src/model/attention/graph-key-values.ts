// Keys and values for attention in operations of the runtime (graph-attention.ts). Before a run the cached blocks become
// graph inputs, as views of the pool where they can; after it the new keys and values are stored. If a prefill chunk's blocks
// are adjacent in the pool, the runtime writes them in place. attention/inputs.ts says what the inputs mean.

import { bools, type Feeds, floats, int64s, type Outputs } from "../../graph/session.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { KeyValues, Piece, RunParts } from "../key-values.ts";
import type { Chunk } from "../runner.ts";
import { wantedRows } from "../step-inputs.ts";
import { blockPlaces } from "./blockwise-attention.ts";
import { blockOutputs } from "./graph-attention.ts";
import { PART_BOUNDS } from "./inputs.ts";
import { type BlockMemory, KvPool } from "./kv-pool.ts";
import { longestPiece, PREFILL_PARTS, partEnds, piecesOf, shortestPart } from "./prefill-pieces.ts";

export class GraphKeyValues implements KeyValues {
  readonly kept: Feeds = {};
  readonly #config: ModelConfig;
  readonly #pool: KvPool;
  readonly #threads: number;
  readonly #windows: readonly (number | null)[];
  /** Scratch memory for the prefill's past, per layer. Grows to the longest past so far. */
  #pastKeys: Float32Array[] = [];
  #pastValues: Float32Array[] = [];

  constructor(config: ModelConfig, positionsPerBlock: number, numBlocks: number, threads: number) {
    this.#config = config;
    this.#pool = new KvPool(config, positionsPerBlock, numBlocks);
    this.#threads = threads;
    this.#windows = [...new Set(config.layers.map((layer) => layer.window))];
  }

  /** A run takes all one-token chunks and at most one piece of a longer chunk. */
  runsOf(chunks: readonly Chunk[]): Piece[][] {
    const all = chunks.map((chunk, of) => ({ ...chunk, of }));
    const decoding = all.filter((chunk) => chunk.tokens.length === 1);
    const pieces = all
      .filter((chunk) => chunk.tokens.length > 1)
      .flatMap((chunk) => piecesOf(chunk, this.#pool.positionsPerBlock, longestPiece(this.#threads)));
    if (pieces.length === 0) return [decoding];
    return pieces.map((piece, i) => (i === 0 ? [...decoding, piece] : [piece]));
  }

  prepare(pieces: readonly Piece[]): RunParts {
    const decoding = pieces.filter((piece) => piece.tokens.length === 1);
    const prefill = pieces.find((piece) => piece.tokens.length > 1) ?? null;
    const feeds: Feeds = {
      decode_count: int64s(BigInt64Array.of(BigInt(decoding.length)), [1]),
      has_prefill: bools(Uint8Array.of(prefill === null ? 0 : 1), []),
    };
    this.#addDecode(feeds, decoding);
    this.#addPrefill(feeds, prefill, decoding.length);
    return { feeds, ...this.#outputs(decoding, prefill) };
  }

  copyBlock(from: number, to: number): void {
    this.#pool.copyBlock(from, to);
  }

  clearBlock(block: number, first: number): void {
    this.#pool.clearFrom(block, first);
  }

  /** Empty outputs are left out, because even those take time. A decoding chunk without blocks is not stored. */
  #outputs(decoding: readonly Chunk[], prefill: Chunk | null): Omit<RunParts, "feeds"> {
    const [config, pool] = [this.#config, this.#pool];
    const blocks = prefill === null ? new Int32Array(0) : writtenBlocks(prefill, pool.positionsPerBlock);
    const inPlace = pool.inOrder(blocks);
    const ofRows = decoding.length === 0 ? [] : ["new_keys", "new_values"];
    const ofBlocks = prefill === null ? [] : config.layers.flatMap((_, i) => Object.values(blockOutputs(i)));
    return {
      outputs: [...ofRows, ...ofBlocks],
      into:
        prefill === null || inPlace === null
          ? {}
          : blockTargets(config, pool.positionsPerBlock, blocks.length, inPlace),
      remember(outputs) {
        if (decoding.length > 0) rememberRows(config, pool, decoding, outputs);
        if (inPlace === null) rememberBlocks(config, pool, blocks, outputs);
      },
    };
  }

  #addDecode(feeds: Feeds, decoding: readonly Chunk[]): void {
    const [config, pool] = [this.#config, this.#pool];
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
    const [config, pool] = [this.#config, this.#pool];
    const { positionsPerBlock } = pool;
    const start = prefill?.start ?? 0;
    const begun = start % positionsPerBlock;
    const past = (start - begun) / positionsPerBlock;
    const count = prefill?.tokens.length ?? 0;
    const ends = count === 0 ? [] : partEnds(begun, count, positionsPerBlock, shortestPart(this.#threads));
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
    const { positionsPerBlock } = this.#pool;
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
    const pool = this.#pool;
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
    const { numLayers } = this.#config;
    if (this.#pastKeys.length === numLayers && this.#pastKeys[0]!.length >= elements) return;
    const size = Math.max(elements, 2 * (this.#pastKeys[0]?.length ?? 0));
    this.#pastKeys = Array.from({ length: numLayers }, () => new Float32Array(size));
    this.#pastValues = Array.from({ length: numLayers }, () => new Float32Array(size));
  }
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

function dataOf(outputs: Outputs, name: string): Float32Array {
  return outputs[name]!.data as Float32Array;
}

function writtenBlocks({ start, tokens, blocks }: Chunk, positionsPerBlock: number): Int32Array {
  return blocks.subarray(Math.floor(start / positionsPerBlock), Math.ceil((start + tokens.length) / positionsPerBlock));
}

function blockTargets(
  { numKvHeads, headDim, layers }: ModelConfig,
  positionsPerBlock: number,
  count: number,
  memoryOf: (layer: number) => BlockMemory,
): Outputs {
  const targets: Outputs = {};
  for (const layer of layers.keys()) {
    const names = blockOutputs(layer);
    const { keys, values } = memoryOf(layer);
    targets[names.keys] = floats(keys, [count, numKvHeads, positionsPerBlock, headDim]);
    targets[names.values] = floats(values, [count, numKvHeads, headDim, positionsPerBlock]);
  }
  return targets;
}

function rememberRows({ layers }: ModelConfig, pool: KvPool, decoding: readonly Chunk[], outputs: Outputs): void {
  const [keys, values] = [dataOf(outputs, "new_keys"), dataOf(outputs, "new_values")];
  for (const layer of layers.keys()) {
    for (const [i, { start, blocks }] of decoding.entries()) {
      if (blocks.length > 0) pool.writeRow(layer, keys, values, layer * decoding.length + i, start, blocks);
    }
  }
}

function rememberBlocks({ layers }: ModelConfig, pool: KvPool, blocks: Int32Array, outputs: Outputs): void {
  for (const layer of layers.keys()) {
    const names = blockOutputs(layer);
    pool.writeBlocks(layer, blocks, { keys: dataOf(outputs, names.keys), values: dataOf(outputs, names.values) });
  }
}
