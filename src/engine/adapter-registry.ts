// Adapter versions in use by the engine: loading, retiring, and keeping a retired version's slot until its last
// request is done. A load that finds every slot taken waits for retired versions to drain; if none is draining, the
// host refuses. All calls into the host go through `betweenSteps`, so they never meet a running forward.

import type { AdapterHost, AdapterInfo } from "../model/lora/adapter-host.ts";

type BetweenSteps = <T>(work: () => Promise<T>) => Promise<T>;

export class AdapterRegistry {
  readonly #host: AdapterHost | null;
  readonly #betweenSteps: BetweenSteps;
  /** Told about unloads that failed after their caller was answered. */
  readonly #onFault: (error: unknown) => void;
  /** Version -> requests in flight, for every version the host holds. */
  readonly #inFlight = new Map<string, number>();
  /** Versions that take no new requests and leave when their count reaches 0. */
  readonly #retired = new Set<string>();
  #drained: (() => void)[] = [];

  constructor(host: AdapterHost | null, betweenSteps: BetweenSteps, onFault: (error: unknown) => void) {
    this.#host = host;
    this.#betweenSteps = betweenSteps;
    this.#onFault = onFault;
  }

  async load(folder: string): Promise<AdapterInfo> {
    const host = this.#host;
    if (host === null) throw new Error("this engine serves no adapters");
    while (this.#inFlight.size >= host.maxLoras && this.#retired.size > 0) {
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
    const { version, rank } = await this.#betweenSteps(() => host.load(folder));
    if (!this.#inFlight.has(version)) this.#inFlight.set(version, 0);
    this.#retired.delete(version);
    return { version, rank };
  }

  /** From now on requests for `version` are refused; its slot is freed when nobody uses it. */
  async retire(version: string): Promise<void> {
    const users = this.#inFlight.get(version);
    if (users === undefined) throw new Error(`adapter ${version} is not loaded`);
    this.#retired.add(version);
    if (users === 0) await this.#unload(version);
  }

  /** Slot for a new request (0 = base model), or null when the version is not served. Pair with `release`. */
  acquire(version: string | null): number | null {
    if (version === null) return 0;
    const users = this.#inFlight.get(version);
    const slot = this.#host?.slotOf(version) ?? null;
    if (users === undefined || slot === null || this.#retired.has(version)) return null;
    this.#inFlight.set(version, users + 1);
    return slot;
  }

  release(version: string | null): void {
    if (version === null) return;
    const users = this.#inFlight.get(version)! - 1;
    this.#inFlight.set(version, users);
    if (users === 0 && this.#retired.has(version)) this.#unload(version).catch(this.#onFault);
  }

  async #unload(version: string): Promise<void> {
    try {
      await this.#betweenSteps(async () => {
        // Loaded again, or in use again, since this was queued.
        if (!this.#retired.has(version) || this.#inFlight.get(version) !== 0) return;
        // Forgotten even if the host fails: whether the slot is free is then for its next `load` to say.
        this.#inFlight.delete(version);
        this.#retired.delete(version);
        await this.#host!.unload(version);
      });
    } finally {
      const waiting = this.#drained;
      this.#drained = [];
      for (const resume of waiting) resume();
    }
  }
}
