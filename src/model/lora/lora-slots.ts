// The weights of the adapters that a runner serves: PEFT folders loaded at run time, each in a slot (0 is the base
// model). For a step, the factors of the slots it uses, or of all slots, are laid side by side as lora-inputs.ts
// describes. The last few layouts are kept, because most steps use the same adapters as the one before.

import { type Feeds, floats } from "../../graph/session.ts";
import { linearShape } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type Site, sitesOf } from "../checkpoint/sites.ts";
import type { Chunk } from "../runner.ts";
import type { AdapterHost } from "./adapter-host.ts";
import { type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "./adapter-host.ts";
import type { LoraAdapter, LoraPair } from "./lora-adapter.ts";
import { paddedRank, siteShape } from "./lora-inputs.ts";
import { loadPeft } from "./peft.ts";

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

export class LoraSlots implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  readonly #config: ModelConfig;
  /** The different numbers of maps that sites have. */
  readonly #partCounts: ReadonlySet<number>;
  /** Index i holds slot i + 1. */
  readonly #slots: (LoraAdapter | null)[];
  /** Keyed by their slots, least recently used first. */
  readonly #layouts = new Map<string, Layout>();
  /** The layout for steps without adapters. */
  readonly #none: Layout;
  /** The slots that the last step used, and how many steps in a row used them. */
  #lastKey = "";
  #inARow = 0;

  constructor(config: ModelConfig, maxLoras: number, maxLoraRank: number) {
    this.#config = config;
    this.#partCounts = new Set(config.layers.flatMap((layer) => sitesOf(layer).map((site) => layer.maps[site].length)));
    this.maxLoras = maxLoras;
    this.maxLoraRank = maxLoraRank;
    this.#slots = new Array<LoraAdapter | null>(maxLoras).fill(null);
    this.#none = this.#buildLayout([]);
  }

  async load(folder: string): Promise<AdapterInfo & { slot: number }> {
    const adapter = loadPeft(folder, this.#config);
    const { version, rank } = adapter;
    const known = this.slotOf(version);
    if (known !== null) return { version, rank, slot: known };
    if (rank > this.maxLoraRank) {
      throw new AdapterTooLarge(`the adapter has rank ${rank}, more than --max-lora-rank ${this.maxLoraRank}`);
    }
    const free = this.#slots.indexOf(null);
    if (free === -1) {
      throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use; raise --max-loras or unload one`);
    }
    this.#slots[free] = adapter;
    return { version, rank, slot: free + 1 };
  }

  async unload(version: string): Promise<void> {
    const slot = this.slotOf(version);
    if (slot === null) return;
    this.#slots[slot - 1] = null;
    this.#layouts.clear();
  }

  slotOf(version: string): number | null {
    const at = this.#slots.findIndex((adapter) => adapter?.version === version);
    return at === -1 ? null : at + 1;
  }

  /** Adds the adapter inputs of one run. Its rows are those of the chunks, in order. */
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
          mask.fill(this.#slots[adapterSlot - 1]!.scale, first, first + parts * layout.rank);
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
    const loaded = this.#slots.flatMap((adapter, i) => (adapter === null ? [] : [i + 1]));
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
    const adapters = used.map((slot) => this.#slots[slot - 1]!);
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
