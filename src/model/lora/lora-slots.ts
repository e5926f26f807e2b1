// The adapters that a runner serves: PEFT folders loaded at run time, each in a slot (0 is the base model).

import { hasKernels } from "../../graph/session.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type AdapterHost, type AdapterInfo, SlotTable } from "./adapter-host.ts";
import { GraphFactors } from "./graph-factors.ts";
import { KernelFactors } from "./kernel-factors.ts";
import { loadPeft } from "./peft.ts";
import type { ServedFactors } from "./served-lora.ts";

export class LoraSlots implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  readonly factors: ServedFactors;
  readonly #config: ModelConfig;
  readonly #table: SlotTable;

  constructor(config: ModelConfig, maxLoras: number, maxLoraRank: number) {
    this.#config = config;
    this.maxLoras = maxLoras;
    this.maxLoraRank = maxLoraRank;
    this.factors = hasKernels ? new KernelFactors(config) : new GraphFactors(config);
    this.#table = new SlotTable(maxLoras, maxLoraRank);
  }

  async load(folder: string): Promise<AdapterInfo & { slot: number }> {
    const adapter = loadPeft(folder, this.#config);
    const { version, rank } = adapter;
    const known = this.slotOf(version);
    if (known !== null) return { version, rank, slot: known };
    const slot = this.#table.freeFor(rank);
    this.factors.set(slot, adapter);
    this.#table.set(slot, version);
    return { version, rank, slot };
  }

  async unload(version: string): Promise<void> {
    const slot = this.slotOf(version);
    if (slot === null) return;
    this.#table.set(slot, null);
    this.factors.delete(slot);
  }

  slotOf(version: string): number | null {
    return this.#table.slotOf(version);
  }
}
