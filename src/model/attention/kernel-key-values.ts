// Keys and values for attention in the native module (kernel-attention.ts), which reads and writes them in place. It never
// reads a position that a sequence has not stored, so what earlier sequences left need not be cleared.

import { type Feeds, floats, halves, int64s, useHugePages } from "../../graph/session.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { KeyValues, Piece, RunParts } from "../key-values.ts";
import type { Chunk } from "../runner.ts";
import type { CacheType } from "./cache-type.ts";
import { blockElements } from "./kernel-attention.ts";
import { longestRun } from "./longest-run.ts";

export class KernelKeyValues implements KeyValues {
  /** The memories. */
  readonly kept: Feeds;
  /** Of each layer: [numBlocks, blockElements]. The operating system fills it lazily. */
  readonly #memories: readonly (Float32Array | Uint16Array)[];
  readonly #blockElements: number;
  /** Rows of a run, about. */
  readonly #mostRows: number;

  constructor(config: ModelConfig, positionsPerBlock: number, numBlocks: number, type: CacheType, threads: number) {
    this.#mostRows = longestRun(threads);
    this.#blockElements = blockElements(config, positionsPerBlock);
    const Memory = type === "float16" ? Uint16Array : Float32Array;
    this.#memories = config.layers.map(() => new Memory(numBlocks * this.#blockElements));
    for (const memory of this.#memories) useHugePages(memory);
    const shape = [numBlocks, this.#blockElements];
    const tensor = (data: Float32Array | Uint16Array) =>
      data instanceof Uint16Array ? halves(data, shape) : floats(data, shape);
    this.kept = Object.fromEntries(this.#memories.map((data, layer) => [`cache.${layer}`, tensor(data)]));
  }

  runsOf(chunks: readonly Chunk[]): Piece[][] {
    const runs: Piece[][] = [];
    let room = 0;
    const add = (piece: Piece) => {
      if (room <= 0) {
        runs.push([]);
        room = this.#mostRows;
      }
      runs.at(-1)!.push(piece);
      room -= piece.tokens.length;
    };
    const all = chunks.map((chunk, of) => ({ ...chunk, of }));
    for (const chunk of all) if (chunk.tokens.length === 1) add(chunk);
    for (const chunk of all) {
      if (chunk.tokens.length === 1) continue;
      const { tokens, start, logits } = chunk;
      for (let at = 0; at < tokens.length; ) {
        const end = Math.min(at + (room > 0 ? room : this.#mostRows), tokens.length);
        const wanted = logits === "last" && end < tokens.length ? "none" : logits;
        add({ ...chunk, tokens: tokens.subarray(at, end), start: start + at, logits: wanted });
        at = end;
      }
    }
    return runs;
  }

  prepare(pieces: readonly Piece[]): RunParts {
    let [stored, held] = [0, 0];
    for (const { blocks } of pieces) {
      if (blocks.length > 0) stored++;
      held += blocks.length;
    }
    const spans = new BigInt64Array(4 * stored);
    const blocks = new BigInt64Array(held);
    let [row, span, at] = [0, 0, 0];
    for (const piece of pieces) {
      if (piece.blocks.length > 0) {
        spans[span] = BigInt(row);
        spans[span + 1] = BigInt(piece.tokens.length);
        spans[span + 2] = BigInt(piece.start);
        spans[span + 3] = BigInt(at);
        for (let i = 0; i < piece.blocks.length; i++) blocks[at + i] = BigInt(piece.blocks[i]!);
        span += 4;
        at += piece.blocks.length;
      }
      row += piece.tokens.length;
    }
    const feeds = { spans: int64s(spans, [stored, 4]), blocks: int64s(blocks, [held]) };
    return { feeds, outputs: [], into: {}, remember() {} };
  }

  copyBlock(from: number, to: number): void {
    const size = this.#blockElements;
    for (const memory of this.#memories) memory.copyWithin(to * size, from * size, (from + 1) * size);
  }

  clearBlock(): void {}
}
