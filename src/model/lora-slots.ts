// The adapters a runner serves: PEFT folders loaded at run time, each in a slot (0 is the base model). For a step, the
// factors of the slots it uses are laid side by side as lora-inputs.ts describes; the last few layouts are kept, because
// steps mostly use the same adapters as the one before.

import { type AdapterInfo, NoAdapterSlot } from "../engine/contract.ts";
import type { AdapterHost } from "../engine/model-host.ts";
import type { Chunk } from "../engine/runner.ts";
import { type Feeds, floats } from "../graph/session.ts";
import { type Site, siteParts, sites } from "./decoder.ts";
import { linearShape } from "./expected-tensors.ts";
import type { LoraAdapter, LoraPair } from "./lora-adapter.ts";
import { paddedRank, siteShape } from "./lora-inputs.ts";
import type { ModelConfig } from "./model-config.ts";
import { loadPeft } from "./peft.ts";

/** Factors of some slots, side by side. */
interface Layout {
  /** Position of each used slot. */
  position: ReadonlyMap<number, number>;
  rank: number;
  feeds: Feeds;
}

const KEPT_LAYOUTS = 4;

export class LoraSlots implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  private readonly config: ModelConfig;
  /** Slot i + 1. */
  private readonly slots: (LoraAdapter | null)[];
  private readonly layouts = new Map<string, Layout>();

  constructor(config: ModelConfig, maxLoras: number, maxLoraRank: number) {
    this.config = config;
    this.maxLoras = maxLoras;
    this.maxLoraRank = maxLoraRank;
    this.slots = new Array<LoraAdapter | null>(maxLoras).fill(null);
  }

  async load(folder: string): Promise<AdapterInfo & { slot: number }> {
    const adapter = loadPeft(folder, this.config);
    const { version, rank } = adapter;
    const known = this.slotOf(version);
    if (known !== null) return { version, rank, slot: known };
    if (rank > this.maxLoraRank) {
      throw new Error(`the adapter has rank ${rank}, more than --max-lora-rank ${this.maxLoraRank}`);
    }
    const free = this.slots.indexOf(null);
    if (free === -1) {
      throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use; raise --max-loras or unload one`);
    }
    this.slots[free] = adapter;
    return { version, rank, slot: free + 1 };
  }

  async unload(version: string): Promise<void> {
    const slot = this.slotOf(version);
    if (slot === null) return;
    this.slots[slot - 1] = null;
    this.layouts.clear();
  }

  slotOf(version: string): number | null {
    const at = this.slots.findIndex((adapter) => adapter?.version === version);
    return at === -1 ? null : at + 1;
  }

  /** Adds the adapter inputs of one run. Rows are those of the chunks, in order. */
  addFeeds(feeds: Feeds, chunks: readonly Chunk[]): void {
    const layout = this.layoutOf([...new Set(chunks.map((chunk) => chunk.adapterSlot))].filter((slot) => slot !== 0));
    Object.assign(feeds, layout.feeds);
    const n = chunks.reduce((sum, chunk) => sum + chunk.tokens.length, 0);
    for (const parts of new Set(sites.map((site) => siteParts[site].length))) {
      const columns = layout.position.size * parts * layout.rank;
      const mask = new Float32Array(n * columns);
      let row = 0;
      for (const { adapterSlot, tokens } of chunks) {
        const position = layout.position.get(adapterSlot);
        for (let i = row; position !== undefined && i < row + tokens.length; i++) {
          const first = i * columns + position * parts * layout.rank;
          mask.fill(this.slots[adapterSlot - 1]!.scale, first, first + parts * layout.rank);
        }
        row += tokens.length;
      }
      feeds[`lora_mask.${parts}`] = floats(mask, [n, 1, columns]);
    }
  }

  private layoutOf(used: number[]): Layout {
    const key = used.sort((a, b) => a - b).join();
    const known = this.layouts.get(key);
    if (known !== undefined) return known;
    const layout = this.buildLayout(used);
    if (this.layouts.size >= KEPT_LAYOUTS) this.layouts.delete(this.layouts.keys().next().value!);
    this.layouts.set(key, layout);
    return layout;
  }

  private buildLayout(used: readonly number[]): Layout {
    const adapters = used.map((slot) => this.slots[slot - 1]!);
    const rank = adapters.reduce((most, adapter) => Math.max(most, paddedRank(adapter.rank)), 0);
    const feeds: Feeds = {};
    for (let layer = 0; layer < this.config.numLayers; layer++) {
      for (const site of sites) this.addSite(feeds, layer, site, adapters, rank);
    }
    return { position: new Map(used.map((slot, i) => [slot, i])), rank, feeds };
  }

  private addSite(feeds: Feeds, layer: number, site: Site, adapters: readonly LoraAdapter[], rank: number): void {
    const parts = siteParts[site];
    const { inputs, out } = siteShape(this.config, site);
    const columns = adapters.length * parts.length * rank;
    const a = new Float32Array(inputs * columns);
    const b = new Float32Array(columns * out);
    for (const [position, adapter] of adapters.entries()) {
      let firstOut = 0;
      for (const [part, name] of parts.entries()) {
        const pair = adapter.layers[layer]![name];
        const column = (position * parts.length + part) * rank;
        const partOut = linearShape(this.config, name)[0];
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
