// The factors of adapters for the serving graph without the native module. For a step, the factors of the slots it uses, or
// of all slots, are laid side by side as graph-lora.ts describes. The last few layouts are kept, because most steps use
// the same adapters as the one before.

import { type Feeds, floats } from "../../graph/session.ts";
import { linearShape, siteShape } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type Site, sitesOf } from "../families/tensor-names.ts";
import type { Chunk } from "../runner.ts";
import type { LoraAdapter, LoraPair } from "./lora-adapter.ts";
import { paddedRank } from "./lora-products.ts";
import type { ServedFactors } from "./served-lora.ts";

/** Factors of some slots, side by side. */
interface Layout {
  /** Position of each used slot. */
  position: ReadonlyMap<number, number>;
  rank: number;
  feeds: Feeds;
}

const KEPT_LAYOUTS = 4;

/** Most adapters in a layout shared by all steps: unused ones cost a little arithmetic in each. */
const MOST_TOGETHER = 8;

/** After this many steps with the same adapters, they get a layout of their own. */
const STEADY_STEPS = 32;

export class GraphFactors implements ServedFactors {
  readonly #config: ModelConfig;
  /** The different numbers of linear layers that sites have. */
  readonly #partCounts: ReadonlySet<number>;
  readonly #adapters = new Map<number, LoraAdapter>();
  /** Keyed by their slots, least recently used first. */
  readonly #layouts = new Map<string, Layout>();
  /** The layout for steps without adapters. */
  readonly #none: Layout;
  /** The slots that the last step used, and how many steps in a row used them. */
  #lastKey = "";
  #inARow = 0;

  constructor(config: ModelConfig) {
    this.#config = config;
    this.#partCounts = new Set(config.layers.flatMap((layer) => sitesOf(layer).map((site) => layer.maps[site].length)));
    this.#none = this.#buildLayout([]);
  }

  set(slot: number, adapter: LoraAdapter): void {
    this.delete(slot);
    this.#adapters.set(slot, adapter);
  }

  delete(slot: number): void {
    if (this.#adapters.delete(slot)) this.#layouts.clear();
  }

  addFeeds(feeds: Feeds, chunks: readonly Chunk[]): void {
    const layout = this.#layoutOf([...new Set(chunks.map((chunk) => chunk.adapterSlot))].filter((slot) => slot !== 0));
    Object.assign(feeds, layout.feeds);
    const n = chunks.reduce((sum, chunk) => sum + chunk.tokens.length, 0);
    for (const parts of this.#partCounts) {
      const columns = layout.position.size * parts * layout.rank;
      const mask = new Float32Array(n * columns);
      let row = 0;
      for (const { adapterSlot, tokens } of chunks) {
        const position = layout.position.get(adapterSlot);
        for (let i = row; position !== undefined && i < row + tokens.length; i++) {
          const first = i * columns + position * parts * layout.rank;
          mask.fill(this.#adapters.get(adapterSlot)!.scale, first, first + parts * layout.rank);
        }
        row += tokens.length;
      }
      feeds[`lora_mask.${parts}`] = floats(mask, [n, columns]);
    }
  }

  /** Building a layout takes as long as several steps, so steps that mix adapters in many ways share one of all slots. */
  #layoutOf(used: number[]): Layout {
    if (used.length === 0) return this.#none;
    const key = used.sort((a, b) => a - b).join();
    this.#inARow = key === this.#lastKey ? this.#inARow + 1 : 1;
    this.#lastKey = key;
    const exact = this.#layouts.get(key);
    if (exact !== undefined) return this.#keep(key, exact);
    if (this.#layouts.size < KEPT_LAYOUTS || this.#inARow === STEADY_STEPS) {
      return this.#keep(key, this.#buildLayout(used));
    }
    for (const [wider, layout] of this.#layouts) {
      if (used.every((slot) => layout.position.has(slot))) return this.#keep(wider, layout);
    }
    const loaded = [...this.#adapters.keys()].sort((a, b) => a - b);
    const wanted = loaded.length <= MOST_TOGETHER ? loaded : used;
    return this.#keep(wanted.join(), this.#buildLayout(wanted));
  }

  /** Keeps a layout as the most recently used one. */
  #keep(key: string, layout: Layout): Layout {
    this.#layouts.delete(key);
    this.#layouts.set(key, layout);
    if (this.#layouts.size > KEPT_LAYOUTS) this.#layouts.delete(this.#layouts.keys().next().value!);
    return layout;
  }

  #buildLayout(used: readonly number[]): Layout {
    const adapters = used.map((slot) => this.#adapters.get(slot)!);
    const rank = adapters.reduce((most, adapter) => Math.max(most, paddedRank(adapter.rank)), 0);
    const feeds: Feeds = {};
    for (const [index, layer] of this.#config.layers.entries()) {
      for (const site of sitesOf(layer)) this.#addSite(feeds, index, site, adapters, rank);
    }
    return { position: new Map(used.map((slot, i) => [slot, i])), rank, feeds };
  }

  #addSite(feeds: Feeds, layer: number, site: Site, adapters: readonly LoraAdapter[], rank: number): void {
    const parts = this.#config.layers[layer]!.maps[site];
    const { inputs, out } = siteShape(this.#config, layer, site);
    const columns = adapters.length * parts.length * rank;
    const a = new Float32Array(inputs * columns);
    const b = new Float32Array(columns * out);
    for (const [position, adapter] of adapters.entries()) {
      let firstOut = 0;
      for (const [part, name] of parts.entries()) {
        const pair = adapter.layers[layer]![name];
        const column = (position * parts.length + part) * rank;
        const partOut = linearShape(this.#config, name)[0];
        if (pair !== undefined) place(pair, adapter.rank, a, b, { inputs, out, columns, column, firstOut, partOut });
        firstOut += partOut;
      }
    }
    feeds[`lora_a.${layer}.${site}`] = floats(a, [inputs, columns]);
    feeds[`lora_b.${layer}.${site}`] = floats(b, [columns, out]);
  }
}

interface Place {
  inputs: number;
  out: number;
  columns: number;
  column: number;
  firstOut: number;
  partOut: number;
}

/** Writes one pair into a [inputs, columns] and b [columns, out]. */
function place(pair: LoraPair, rank: number, a: Float32Array, b: Float32Array, at: Place): void {
  for (let r = 0; r < rank; r++) {
    for (let i = 0; i < at.inputs; i++) a[i * at.columns + at.column + r] = pair.a[r * at.inputs + i]!;
    for (let o = 0; o < at.partOut; o++) b[(at.column + r) * at.out + at.firstOut + o] = pair.b[o * rank + r]!;
  }
}
