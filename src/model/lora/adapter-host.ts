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
