// The adapters a runner holds: the contract between the engine, which counts users, and the model, which holds weights.

export interface AdapterInfo {
  /** Hash of the adapter's content: names may be reused, versions are not. */
  version: string;
  rank: number;
}

/** Every adapter slot is taken: by adapters that stay until somebody unloads them or, if `passing`, by requests. */
export class NoAdapterSlot extends Error {
  readonly passing: boolean;

  constructor(message: string, passing = false) {
    super(message);
    this.name = "NoAdapterSlot";
    this.passing = passing;
  }
}

/** A sound adapter, but of a larger rank than this server serves. */
export class AdapterTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AdapterTooLarge";
  }
}

/**
 * The adapters inside the runner. Called between steps only, never while a forward is running. The engine counts the
 * requests on each version and calls `unload` after the last one, so an implementation needs no counting.
 */
export interface AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  /** Rejects with a message for the user: bad folder, rank too large; NoAdapterSlot. Same content: the same slot. */
  load(folder: string): Promise<AdapterInfo & { slot: number }>;
  unload(version: string): Promise<void>;
  /** Slot >= 1 of a loaded version, or null. */
  slotOf(version: string): number | null;
}
