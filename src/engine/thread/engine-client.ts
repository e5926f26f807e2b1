// The caller's side of the engine, whichever thread the loop runs in. Gives each request a handle, turns method calls
// into commands, and routes outputs to their generations and replies to their callers.
import { type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import type { GenerateRequest, Generation, ModelInfo } from "../contract.ts";
import type { RoutedOutput } from "../request-table.ts";
import type { SchedulingOptions } from "../scheduling.ts";
import { GenerationStream } from "./generation-stream.ts";

// The messages between the caller's side of the engine and its loop. In process they are passed as they are; between
// threads they go through structured clone. The client gives each request a number (`handle`), so request ids from
// users cannot clash.

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
  /** URL of a module that exports `createRunner` (see ModelHost in engine-loop.ts), and its options. */
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

interface Call {
  resolve: (adapter: AdapterInfo | null) => void;
  reject: (error: Error) => void;
}

export class EngineClient {
  readonly #send: (command: Command) => void;
  readonly #onFault: (error: Error) => void;
  readonly #streams = new Map<number, GenerationStream>();
  readonly #calls = new Map<number, Call>();
  #lastNumber = 0;
  /** Why nothing is accepted any more; null while open. */
  #closed: string | null = null;

  constructor(send: (command: Command) => void, onFault: (error: Error) => void) {
    this.#send = send;
    this.#onFault = onFault;
  }

  generate(request: GenerateRequest): Generation {
    if (!Number.isInteger(request.n) || request.n < 1) {
      throw new RangeError(`n must be a positive integer: ${request.n}`);
    }
    const handle = ++this.#lastNumber;
    const stream = new GenerationStream(request.n, (index) => this.#cancel(handle, index));
    if (this.#closed !== null) {
      stream.fail(this.#closed);
      return stream;
    }
    this.#streams.set(handle, stream);
    // The engine thread needs the grammar's key only.
    this.#send({ type: "generate", handle, request: { ...request, constraint: null } });
    return stream;
  }

  async loadAdapter(folder: string): Promise<AdapterInfo> {
    const adapter = await this.#call((call) => ({ type: "loadAdapter", call, folder }));
    if (adapter === null) throw new Error("the engine answered a load without an adapter");
    return adapter;
  }

  async unloadAdapter(version: string): Promise<void> {
    await this.#call((call) => ({ type: "unloadAdapter", call, version }));
  }

  receive(event: Event): void {
    switch (event.type) {
      case "outputs":
        for (const { handle, output } of event.outputs) {
          const stream = this.#streams.get(handle);
          stream?.push(output);
          if (stream?.ended) this.#streams.delete(handle);
        }
        return;
      case "reply": {
        const call = this.#calls.get(event.call);
        const { result } = event;
        this.#calls.delete(event.call);
        if (result.ok) call?.resolve(result.adapter);
        else call?.reject(failureOf(result));
        return;
      }
      case "fault":
        this.#onFault(event.error);
        return;
      default:
        event satisfies never;
    }
  }

  /** The loop is gone: everything open ends with an error. */
  failAll(message: string): void {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.fail(message);
    this.#rejectCalls(message);
  }

  /** Everything open ends without further output; later requests fail. */
  close(reason = "the engine is closed"): void {
    this.#closed = reason;
    for (const stream of [...this.#streams.values()]) stream.abort();
    this.#rejectCalls(reason);
  }

  #rejectCalls(message: string): void {
    for (const call of this.#calls.values()) call.reject(new Error(message));
    this.#calls.clear();
  }

  #cancel(handle: number, index: number | null): void {
    if (!this.#streams.has(handle)) return;
    if (index === null) this.#streams.delete(handle);
    this.#send(index === null ? { type: "abort", handle } : { type: "stop", handle, index });
  }

  #call(command: (call: number) => Command): Promise<AdapterInfo | null> {
    if (this.#closed !== null) return Promise.reject(new Error(this.#closed));
    const call = ++this.#lastNumber;
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#send(command(call));
    });
  }
}

function failureOf({ error, kind }: CallResult & { ok: false }): Error {
  if (kind === "NoAdapterSlot") return new NoAdapterSlot(error.message);
  return kind === "AdapterTooLarge" ? new AdapterTooLarge(error.message) : error;
}
