// The adapters of a runner in one memory, laid out as kernel-lora.ts says. An adapter stays where it was loaded. One that
// comes later takes the place of those that went, if it fits; otherwise the memory grows.

import { type Feeds, floats, int64s } from "../../graph/session.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { Chunk } from "../runner.ts";
import { type AdapterLayout, adapterLayout, HEADER, PANEL, type SitePlace } from "./kernel-lora.ts";
import type { LoraAdapter, LoraPair } from "./lora-adapter.ts";
import type { ServedFactors } from "./served-lora.ts";

interface Range {
  begin: number;
  length: number;
}

export class KernelFactors implements ServedFactors {
  readonly #layout: AdapterLayout;
  #memory = new Float32Array(0);
  readonly #ranges = new Map<number, Range>();

  constructor(config: ModelConfig) {
    this.#layout = adapterLayout(config);
  }

  set(slot: number, adapter: LoraAdapter): void {
    this.delete(slot);
    const length = this.#layout.header + adapter.rank * this.#layout.numbers;
    const begin = this.#firstGap(length);
    if (begin + length > this.#memory.length) {
      const larger = new Float32Array(begin + length);
      larger.set(this.#memory.subarray(0, begin));
      this.#memory = larger;
    }
    this.#ranges.set(slot, { begin, length });
    this.#write(adapter, this.#memory.subarray(begin, begin + length));
  }

  delete(slot: number): void {
    this.#ranges.delete(slot);
  }

  addFeeds(feeds: Feeds, chunks: readonly Chunk[]): void {
    const n = chunks.reduce((sum, chunk) => sum + chunk.tokens.length, 0);
    const begins = new BigInt64Array(n);
    let row = 0;
    for (const { adapterSlot, tokens } of chunks) {
      const begin = adapterSlot === 0 ? -1 : this.#ranges.get(adapterSlot)!.begin;
      begins.fill(BigInt(begin), row, row + tokens.length);
      row += tokens.length;
    }
    feeds.lora_factors = floats(this.#memory, [this.#memory.length]);
    feeds.lora_begins = int64s(begins, [n]);
  }

  /** Where so many numbers are free, or else the end. */
  #firstGap(length: number): number {
    let end = 0;
    for (const range of [...this.#ranges.values()].sort((a, b) => a.begin - b.begin)) {
      if (range.begin - end >= length) return end;
      end = range.begin + range.length;
    }
    return end;
  }

  #write(adapter: LoraAdapter, memory: Float32Array): void {
    const { header, sites } = this.#layout;
    memory[HEADER.rank] = adapter.rank;
    memory[HEADER.scale] = adapter.scale;
    for (const site of sites.flatMap((ofLayer) => Object.values(ofLayer))) {
      const pairs = site.maps.map((name) => adapter.layers[site.layer]![name]);
      for (const [i, pair] of pairs.entries()) memory[HEADER.flags + site.firstFlag + i] = pair === undefined ? 0 : 1;
      writeSite(memory.subarray(header + adapter.rank * site.place), adapter.rank, site, pairs);
    }
  }
}

/** Linear layers without a pair keep what lies at their places: nothing reads it. */
function writeSite(
  memory: Float32Array,
  rank: number,
  { inputs, outputs }: SitePlace,
  pairs: readonly (LoraPair | undefined)[],
): void {
  let at = 0;
  for (const pair of pairs) {
    if (pair !== undefined) memory.set(pair.a, at);
    at += rank * inputs;
  }
  for (const [i, pair] of pairs.entries()) {
    if (pair !== undefined) writePanels(memory.subarray(at), pair.b, rank, outputs[i]!);
    at += rank * outputs[i]!;
  }
}

/** b: [outputs, rank] -> panels [rank, outputs of the panel]. */
function writePanels(memory: Float32Array, b: Float32Array, rank: number, outputs: number): void {
  let at = 0;
  for (let first = 0; first < outputs; first += PANEL) {
    const end = Math.min(first + PANEL, outputs);
    for (let r = 0; r < rank; r++) {
      for (let output = first; output < end; output++) memory[at++] = b[output * rank + r]!;
    }
  }
}
