// What a model module gives the engine thread. The module named by the worker's start message exports `createRunner`;
// the ONNX runner and the fakes of the tests use the same entry.

import type { ConstraintFactory } from "./constraint.ts";
import type { AdapterInfo } from "./contract.ts";
import type { Runner } from "./runner.ts";

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

export interface ModelHost {
  runner: Runner;
  adapters?: AdapterHost;
  constraints?: ConstraintFactory;
  /** Frees native memory and files; called once, after the last step. */
  close?(): Promise<void>;
}

/** The export a model module must have. `options` went through structured clone. `adaptersToCome`: some follow at once. */
export type CreateRunner = (options: unknown, adaptersToCome: boolean) => Promise<ModelHost>;
