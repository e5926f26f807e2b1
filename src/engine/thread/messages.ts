// Typed records between the caller's side of the engine and its loop. In-process they are passed as they are; between
// threads they go through structured clone. Requests are named by a number the client chose (`handle`), so request
// ids from users can never clash.

import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import type { GenerateRequest, ModelInfo } from "../contract.ts";
import type { RoutedOutput } from "../request-table.ts";
import type { SchedulingOptions } from "../scheduling.ts";

/** Handled in the order sent, between steps. `call` pairs a request for an answer with its `reply`. */
export type Command =
  | { type: "generate"; handle: number; request: GenerateRequest }
  | { type: "stop"; handle: number; index: number }
  | { type: "abort"; handle: number }
  | { type: "loadAdapter"; call: number; folder: string }
  | { type: "unloadAdapter"; call: number; version: string };

export type Event =
  /** All outputs of one step. */
  | { type: "outputs"; outputs: RoutedOutput[] }
  | { type: "reply"; call: number; result: CallResult }
  /** An error that belongs to no request. */
  | { type: "fault"; error: Error };

/** `kind`: the error's class, which gets lost between threads; null = no special one. */
export type CallResult =
  | { ok: true; adapter: AdapterInfo | null }
  | { ok: false; error: Error; kind: "NoAdapterSlot" | "AdapterTooLarge" | null };

/** Content in the engine, and the folders it was loaded from: any of them may go away while it is there. */
export interface LoadedAdapter {
  version: string;
  folders: string[];
}

/** What the worker gets at start. */
export interface WorkerStart {
  /** URL of a module that exports `createRunner` (see ../model-host.ts), and its options. */
  module: string;
  options: unknown;
  scheduling: SchedulingOptions;
  /** Adapters to load before the first request: those of the thread this one replaces. */
  adapters: LoadedAdapter[];
  /** Memory of the StatCells. */
  stats: SharedArrayBuffer;
}

/** To the worker. `withinMs`: how long a step that is under way may still take. */
export type ToWorker = Command | { type: "close"; withinMs: number };

/** From the worker; `ready` comes once, first of all but faults. */
export type FromWorker = Event | { type: "ready"; info: ModelInfo };
