// Fills the inputs of one run of the serving graph that have to do with its rows. decoder-graph.ts says what they mean. The
// inputs of attention come from the cache (key-values.ts).

import { type Feeds, floats, int64s } from "../graph/session.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import type { Embedding } from "./embedding.ts";
import type { ServedFactors } from "./lora/served-lora.ts";
import type { RotaryTable } from "./rotary-table.ts";
import type { Chunk } from "./runner.ts";

export interface StepParts {
  config: ModelConfig;
  embedding: Embedding;
  /** One per distinct RoPE. */
  rotary: readonly RotaryTable[];
  adapters: ServedFactors;
  /** Whether this many rows, with or without an adapter, would be computed in a way that gives one of them other bits. */
  differAlone(rows: number, adapted: boolean): boolean;
}

export class StepInputs {
  readonly #parts: StepParts;
  readonly #counting = new Counting();

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  /** Rows: those of the chunks, in order. */
  prepare(chunks: readonly Chunk[], withAdapters: boolean): Feeds {
    const feeds: Feeds = {};
    this.#addRows(feeds, chunks);
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
}

/** How many rows of logits a chunk asks for. */
export function wantedRows(chunk: Chunk): number {
  if (chunk.logits === "none") return 0;
  return chunk.logits === "all" ? chunk.tokens.length : 1;
}

/** 0n, 1n, 2n, …: one array that grows. */
class Counting {
  #values = new BigInt64Array(0);

  first(count: number): BigInt64Array {
    if (count > this.#values.length) this.#values = BigInt64Array.from({ length: 2 * count }, (_, i) => BigInt(i));
    return this.#values.subarray(0, count);
  }
}
