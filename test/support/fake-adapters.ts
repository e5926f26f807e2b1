// Adapter slots without weights. The version of a folder is its name ("red copy" has the content of "red"), and a fake
// model sees only the slot number.

import type { AdapterHost } from "../../src/model/lora/adapter-host.ts";
import { type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../src/model/lora/adapter-host.ts";

export class FakeAdapters implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank = 8;
  /** Index = slot - 1. */
  readonly slots: (string | null)[];
  /** A folder that does not exist, beside those with "missing" in their names. */
  gone: string | null = null;

  constructor(maxLoras = 2) {
    this.maxLoras = maxLoras;
    this.slots = new Array(maxLoras).fill(null);
  }

  async load(folder: string): Promise<AdapterInfo & { slot: number }> {
    if (folder.includes("missing") || folder === this.gone) throw new Error(`no adapter in ${folder}`);
    if (folder.includes("large")) throw new AdapterTooLarge("the adapter's rank is too large");
    const version = `version of ${folder.replace(/ copy$/, "")}`;
    const at = this.slots.indexOf(this.slots.includes(version) ? version : null);
    if (at < 0) throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use`);
    this.slots[at] = version;
    return { version, rank: 4, slot: at + 1 };
  }

  async unload(version: string): Promise<void> {
    const at = this.slots.indexOf(version);
    if (at >= 0) this.slots[at] = null;
  }

  slotOf(version: string): number | null {
    const at = this.slots.indexOf(version);
    return at < 0 ? null : at + 1;
  }
}
