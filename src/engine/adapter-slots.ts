// The adapter slots of an engine and who needs them; everybody who loads adapters goes through here. Operators hold an
// adapter until they drop it. Steps of trained policies are a cache: loaded when first asked for, kept afterwards, and
// unloaded when somebody needs the slot, least recently used first, but never under a request. Same content, same slot.
// A request is on an adapter from the moment its name is looked up, long before the engine hears of it.
// What a slot contains is for model/lora/lora-slots.ts, requests in flight are for adapter-registry.ts.

import { type AdapterInfo, NoAdapterSlot } from "../model/lora/adapter-host.ts";
import { SerialWork } from "../pacing/serial-work.ts";
import type { Engine } from "./contract.ts";

export interface SlotLease {
  /** Content version in the engine. */
  version: string;
  /** Idempotent. */
  release(): void;
}

/** Nobody left in all three: it is unloaded. */
interface Slot {
  /** How often operators hold it: once for every name. */
  held: number;
  /** Requests that run on it or are about to. */
  leased: number;
  /** Folders of the steps it is kept for. */
  steps: Set<string>;
  /** Operators have no use for it any more: whoever needs the slot waits for its requests. */
  dropped: boolean;
}

export class AdapterSlots {
  readonly #engine: Pick<Engine, "info" | "loadAdapter" | "unloadAdapter">;
  /** By content version, least recently used first. What is here is in the engine, or was when its thread died. */
  readonly #slots = new Map<string, Slot>();
  /** Each load and unload must see how much room the one before left. */
  readonly #turns = new SerialWork();
  /** A load that waits for requests to end; only the one whose turn it is can. */
  #wake: (() => void) | null = null;

  constructor(engine: Pick<Engine, "info" | "loadAdapter" | "unloadAdapter">) {
    this.#engine = engine;
  }

  /** Loads what the folder contains now, until `drop`. Throws NoAdapterSlot. */
  hold(folder: string): Promise<AdapterInfo> {
    return this.#turns.run(() => this.#hold(folder));
  }

  /** Whether `replace` can make room: nobody else holds this content. */
  isHeldOnce(version: string): boolean {
    return this.#slots.get(version)?.held === 1;
  }

  /**
   * `hold` and `drop` in one slot, for when there is no other: waits for the requests on `version`. The caller sees to it
   * that no new ones come, and has tried `hold`, so that the folder is known to be sound. When this fails all the same,
   * `version` may be gone: see `isHeldOnce`.
   */
  replace(version: string, folder: string): Promise<AdapterInfo> {
    return this.#turns.run(async () => {
      const slot = this.#slots.get(version)!;
      this.#drop(slot);
      try {
        const adapter = await this.#hold(folder);
        await this.#unloadUnused(version); // it is there still, if there was another slot after all
        return adapter;
      } catch (error) {
        if (this.#slots.get(version) === slot) {
          slot.held++;
          slot.dropped = false;
        }
        throw error;
      }
    });
  }

  /** Ends one `hold`. */
  drop(version: string): Promise<void> {
    return this.#turns.run(async () => {
      this.#drop(this.#slots.get(version)!);
      await this.#unloadUnused(version);
    });
  }

  /** Keeps what is held now, dropped or not, at least until the returned function is called. */
  leaseHeld(version: string): () => void {
    return this.#lease(version).release;
  }

  /** Loads a step, unless it is there, and keeps it at least until `release`. Throws NoAdapterSlot. */
  async lease(step: string): Promise<SlotLease> {
    const version = this.#versionOf(step);
    // Without waiting for a turn: others' loads do not hold up a request whose own step is there.
    if (version !== null) return this.#lease(version);
    return this.#turns.run(async () => this.#lease(await this.#loadStep(step)));
  }

  /** Loads a step before it is asked for. Throws NoAdapterSlot. */
  async preload(step: string): Promise<void> {
    await this.#turns.run(() => this.#loadStep(step));
  }

  /** A step that goes away is kept no longer than for the requests on it. */
  forget(step: string): Promise<void> {
    return this.#turns.run(async () => {
      const version = this.#versionOf(step);
      if (version === null) return;
      this.#slots.get(version)!.steps.delete(step);
      await this.#unloadUnused(version);
    });
  }

  async #hold(folder: string): Promise<AdapterInfo> {
    const adapter = await this.#load(folder);
    const slot = this.#used(adapter.version);
    slot.held++;
    slot.dropped = false;
    return adapter;
  }

  #drop(slot: Slot): void {
    slot.held--;
    slot.dropped = slot.held === 0;
  }

  /** Its content version. Must not be called out of turn. */
  async #loadStep(step: string): Promise<string> {
    const version = this.#versionOf(step) ?? (await this.#load(step)).version;
    this.#used(version).steps.add(step);
    return version;
  }

  #lease(version: string): SlotLease {
    const slot = this.#used(version);
    slot.leased++;
    let leased = true;
    const release = (): void => {
      if (!leased) return;
      leased = false;
      slot.leased--;
      this.#used(version);
      this.#wake?.();
      if (!isNeeded(slot)) void this.#turns.run(() => this.#unloadUnused(version));
    };
    return { version, release };
  }

  async #load(folder: string): Promise<AdapterInfo> {
    // Its content may be in a slot already, so the engine is asked even when no room can be made.
    while (this.#slots.size >= this.#engine.info.maxLoras) {
      if (!(await this.#evict()) && !(await this.#someoneLeaves())) break;
    }
    try {
      return await this.#engine.loadAdapter(folder);
    } catch (error) {
      if (!(error instanceof NoAdapterSlot)) throw error;
      const passing = [...this.#slots.values()].some(({ held }) => held === 0);
      throw new NoAdapterSlot(error.message, passing);
    }
  }

  /** false when every slot is needed. */
  async #evict(): Promise<boolean> {
    for (const [version, slot] of this.#slots) {
      if (slot.held > 0 || slot.leased > 0) continue;
      await this.#unload(version);
      return true;
    }
    return false;
  }

  /** Waits for the end of a request. false when none of them is on a dropped adapter, which alone are waited for. */
  async #someoneLeaves(): Promise<boolean> {
    const leaving = ({ dropped, leased, steps }: Slot) => dropped && leased > 0 && steps.size === 0;
    if (![...this.#slots.values()].some(leaving)) return false;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
    return true;
  }

  async #unloadUnused(version: string): Promise<void> {
    const slot = this.#slots.get(version);
    if (slot !== undefined && !isNeeded(slot)) await this.#unload(version);
  }

  async #unload(version: string): Promise<void> {
    this.#slots.delete(version); // before anything is awaited: nobody may lease it any more
    // It fails when the engine's thread died, or did not get the adapter back after that: it is gone either way.
    await this.#engine.unloadAdapter(version).catch(() => {});
  }

  /** The slot, which is now the most recently used one. */
  #used(version: string): Slot {
    const slot = this.#slots.get(version) ?? { held: 0, leased: 0, steps: new Set<string>(), dropped: false };
    this.#slots.delete(version);
    this.#slots.set(version, slot);
    return slot;
  }

  #versionOf(step: string): string | null {
    for (const [version, { steps }] of this.#slots) if (steps.has(step)) return version;
    return null;
  }
}

function isNeeded({ held, leased, steps }: Slot): boolean {
  return held > 0 || leased > 0 || steps.size > 0;
}
