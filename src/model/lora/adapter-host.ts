// The adapters that a runner holds: the contract between the engine, which says what to load, and the model, which
// holds the weights.

export interface AdapterInfo {
  /** Hash of the adapter's content: names may be reused, versions are not. */
  version: string;
  rank: number;
}

/** Every adapter slot is taken. `passing`: a running request has one of them, so it helps to try again later. */
export class NoAdapterSlot extends Error {
  readonly passing: boolean;

  constructor(message: string, passing = false) {
    super(message);
    this.name = "NoAdapterSlot";
    this.passing = passing;
  }
}

/** The adapter is sound, but its rank is larger than this server serves. */
export class AdapterTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AdapterTooLarge";
  }
}

/**
 * The adapters inside the runner. Called between steps only, never while a forward is running. It counts no requests:
 * engine/adapter-slots.ts does, and unloads a version only after its last request.
 */
export interface AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  /**
   * Loads a PEFT folder. The same content gets the same slot. Rejects with a message for the user: the folder is bad,
   * the rank is too large (AdapterTooLarge), or no slot is free (NoAdapterSlot).
   */
  load(folder: string): Promise<AdapterInfo & { slot: number }>;
  /** Frees the slot. Does nothing when the version is not loaded. */
  unload(version: string): Promise<void>;
  /** Slot >= 1 of a loaded version, or null. */
  slotOf(version: string): number | null;
}

/** Which version is in which slot. Slot 0 is the base model. */
export class SlotTable {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  /** Index i holds slot i + 1. */
  readonly #versions: (string | null)[];

  constructor(maxLoras: number, maxLoraRank: number) {
    this.maxLoras = maxLoras;
    this.maxLoraRank = maxLoraRank;
    this.#versions = new Array<string | null>(maxLoras).fill(null);
  }

  slotOf(version: string): number | null {
    const at = this.#versions.indexOf(version);
    return at === -1 ? null : at + 1;
  }

  /** A slot for an adapter that has none. Throws AdapterTooLarge or NoAdapterSlot. */
  freeFor(rank: number): number {
    if (rank > this.maxLoraRank) {
      throw new AdapterTooLarge(`the adapter has rank ${rank}, more than --max-lora-rank ${this.maxLoraRank}`);
    }
    const free = this.#versions.indexOf(null);
    if (free === -1) {
      throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use; raise --max-loras or unload one`);
    }
    return free + 1;
  }

  /** null: the slot is free. */
  set(slot: number, version: string | null): void {
    this.#versions[slot - 1] = version;
  }
}
