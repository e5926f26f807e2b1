// The one owner of an engine's adapter slots: it counts who needs each adapter, waits for requests to end, and tells
// the engine what to load and unload. Operators hold an adapter until they drop it. Steps of trained policies are a
// cache: loaded when first asked for and kept until somebody needs the slot, the least recently used going first. A
// request has a lease from the moment its model name is looked up until its last output, so the engine never has to
// count: it is told to unload only what no request is on. The same content has one slot, whatever its folders.

import { type AdapterInfo, NoAdapterSlot } from "../model/lora/adapter-host.ts";
import { SerialWork } from "../pacing/work.ts";
import type { Engine } from "./contract.ts";

export interface SlotLease {
  /** Content version in the engine. */
  version: string;
  /** Idempotent. */
  release(): void;
}

/** Unloaded when nothing holds it, leases it or keeps it as a step. */
interface Slot {
  /** Holds by operators, one for each name. */
  held: number;
  /** Requests that run on it or will. */
  leased: number;
  /** Folders of the steps it is kept for. */
  steps: Set<string>;
  /** The last operator dropped it: a load that needs the slot waits for its requests. */
  dropped: boolean;
  /** When it was last loaded, or a request on it began or ended. performance.now(). */
  usedAt: number;
}

export class AdapterSlots {
  readonly #engine: Pick<Engine, "info" | "loadAdapter" | "unloadAdapter">;
  /** By content version, least recently used first. All of these are in the engine, or were when its thread died. */
  readonly #slots = new Map<string, Slot>();
  /** One load or unload at a time: each must see how much room the one before left. */
  readonly #turns = new SerialWork();
  /** Wakes the load that waits for requests to end. Only the one whose turn it is can wait. */
  #wake: (() => void) | null = null;

  constructor(engine: Pick<Engine, "info" | "loadAdapter" | "unloadAdapter">) {
    this.#engine = engine;
  }

  /** Loads the folder's present content and keeps it until `drop`. Throws NoAdapterSlot. */
  hold(folder: string): Promise<AdapterInfo> {
    return this.#turns.run(() => this.#hold(folder));
  }

  /** Whether `replace` can use this slot: only one name holds its content. */
  isHeldOnce(version: string): boolean {
    return this.#slots.get(version)?.held === 1;
  }

  /**
   * `drop` and `hold` in the same slot, for when no other is free. Waits for the requests on `version`; the caller lets
   * no new ones in, and has tried `hold` before, so the folder is known to be sound. If this fails all the same,
   * `version` may be gone: ask `isHeldOnce`.
   */
  replace(version: string, folder: string): Promise<AdapterInfo> {
    return this.#turns.run(async () => {
      const slot = this.#slots.get(version)!;
      this.#drop(slot);
      try {
        const adapter = await this.#hold(folder);
        await this.#unloadUnused(version); // still loaded if another slot became free
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

  /** Leases an adapter that is held now. It stays loaded, even if dropped, until the returned function is called. */
  leaseHeld(version: string): () => void {
    return this.#lease(version).release;
  }

  /** Loads a step unless it is loaded, and keeps it at least until `release`. Throws NoAdapterSlot. */
  async lease(step: string): Promise<SlotLease> {
    const version = this.#versionOf(step);
    // Takes no turn: a request whose step is loaded does not wait for the loads of others.
    if (version !== null) return this.#lease(version);
    return this.#turns.run(async () => this.#lease(await this.#loadStep(step)));
  }

  /** Whether a step is loaded. The engine may read its folder again. */
  keeps(step: string): boolean {
    return this.#versionOf(step) !== null;
  }

  /** What is loaded, the folders of the steps that it is kept for, the number of requests on each, and for how long there has been none. */
  list(): { version: string; steps: string[]; requests: number; idleMs: number }[] {
    const now = performance.now();
    return [...this.#slots].map(([version, { leased, usedAt, steps }]) => {
      return { version, steps: [...steps], requests: leased, idleMs: leased > 0 ? 0 : now - usedAt };
    });
  }

  /** Loads a step before it is asked for. Throws NoAdapterSlot. */
  async preload(step: string): Promise<void> {
    await this.#turns.run(() => this.#loadStep(step));
  }

  /** The step is about to be deleted: unloads it after the requests on it, unless another step has the same content. */
  forget(step: string): Promise<void> {
    return this.#turns.run(async () => {
      const version = this.#versionOf(step);
      if (version === null) return;
      const { steps } = this.#slots.get(version)!;
      steps.delete(step);
      const [other] = steps;
      // Engines that come or restart get the content from the folder that was named last. If this one is gone too, they say so.
      if (other !== undefined) await this.#engine.loadAdapter(other).catch(() => {});
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

  /** Returns the step's content version. Runs inside a turn. */
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
    // The content may be in a slot already, so the engine is asked even when no room can be made.
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

  /** Unloads the least recently used step without requests. false when there is none. */
  async #evict(): Promise<boolean> {
    for (const [version, slot] of this.#slots) {
      if (slot.held > 0 || slot.leased > 0) continue;
      await this.#unload(version);
      return true;
    }
    return false;
  }

  /** Waits for a request to end. false, at once, when none is on a dropped adapter: only those are waited for. */
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
    this.#slots.delete(version); // before the first await, so that nobody leases it any more
    // Fails when the engine's thread dies meanwhile; the next thread does not get the adapter back.
    await this.#engine.unloadAdapter(version).catch(() => {});
  }

  /** The slot, now the most recently used one. */
  #used(version: string): Slot {
    const fresh = { held: 0, leased: 0, steps: new Set<string>(), dropped: false, usedAt: 0 };
    const slot: Slot = this.#slots.get(version) ?? fresh;
    slot.usedAt = performance.now();
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
