// The adapters that a runner serves: PEFT folders loaded at run time, each in a slot (0 is the base model).

import { hasKernels } from "../../graph/session.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type AdapterHost, type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "./adapter-host.ts";
import { GraphFactors } from "./graph-factors.ts";
import { KernelFactors } from "./kernel-factors.ts";
import { loadPeft } from "./peft.ts";
import type { ServedFactors } from "./served-lora.ts";

export class LoraSlots implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  readonly factors: ServedFactors;
  readonly #config: ModelConfig;
  /** Versions; index i holds slot i + 1. */
  readonly #slots: (string | null)[];

  constructor(config: ModelConfig, maxLoras: number, maxLoraRank: number) {
    this.#config = config;
    this.maxLoras = maxLoras;
    this.maxLoraRank = maxLoraRank;
    this.factors = hasKernels ? new KernelFactors(config) : new GraphFactors(config);
    this.#slots = new Array<string | null>(maxLoras).fill(null);
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
    this.factors.set(free + 1, adapter);
    this.#slots[free] = version;
    return { version, rank, slot: free + 1 };
  }

  async unload(version: string): Promise<void> {
    const slot = this.slotOf(version);
    if (slot === null) return;
    this.#slots[slot - 1] = null;
    this.factors.delete(slot);
  }

  slotOf(version: string): number | null {
    const at = this.#slots.indexOf(version);
    return at === -1 ? null : at + 1;
  }
}
