// The messages between the caller's side of the engine and its loop. In process they are passed as they are; between
// threads they go through structured clone. The client gives each request a number (`handle`), so request ids from
// users cannot clash.

import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import type { GenerateRequest, ModelInfo } from "../contract.ts";
import type { RoutedOutput } from "../request-table.ts";
import type { SchedulingOptions } from "../scheduling.ts";

/** Handled between steps, in the order sent. `call` matches a command with its `reply`. */
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

/** `kind`: the error's class, which structured clone loses; null = a plain Error. */
export type CallResult =
  | { ok: true; adapter: AdapterInfo | null }
  | { ok: false; error: Error; kind: "NoAdapterSlot" | "AdapterTooLarge" | null };

/** An adapter in the engine and the folders with its content. Any of them may disappear while it is loaded. */
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
  /** Adapters of the thread that this one replaces, to load before the first request. */
  adapters: LoadedAdapter[];
  /** Memory of the StatCells. */
  stats: SharedArrayBuffer;
}

/** To the worker. `withinMs`: how long a running step may still take. */
export type ToWorker = Command | { type: "close"; withinMs: number };

/** From the worker. `ready` comes once; only faults may come before it. */
export type FromWorker = Event | { type: "ready"; info: ModelInfo };
