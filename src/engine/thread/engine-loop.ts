// Drives the step engine: takes commands, steps while there is work, delivers one batch of outputs per step, and sleeps
// otherwise. Between two steps it yields to the event loop once, so that messages get in. Commands take effect between
// steps, in the order given. The worker thread runs it, and so do tests without a thread.

import { setImmediate as macrotask } from "node:timers/promises";
import type { ConstraintFactory } from "../../grammar/match/sequence-constraint.ts";
import { type AdapterHost, type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import type { Runner } from "../../model/runner.ts";
import type { ModelInfo } from "../contract.ts";
import { StepEngine } from "../engine.ts";
import { maxModelLen } from "../scheduler.ts";
import type { SchedulingOptions } from "../scheduling.ts";
import type { StatCells } from "../stats.ts";
import type { CallResult, Command, Event, LoadedAdapter } from "./engine-client.ts";

// What the engine thread runs: the loop below, or one that hands the steps to another process (gpu/gpu-loop.ts).

export interface Loop {
  readonly info: ModelInfo;
  send(command: Command): void;
  loadAdapter(folder: string): Promise<AdapterInfo>;
  unloadAdapter(version: string): Promise<void>;
  /** Ends everything without further output and frees the model. */
  close(): Promise<void>;
}

export interface LoopParts {
  options: SchedulingOptions;
  stats: StatCells;
  deliver: (event: Event) => void;
  /** Called when the loop itself fails. It delivers nothing after that. */
  onCrash: (error: unknown) => void;
}

/** The export of a module with a loop of its own. `options` went through structured clone. */
export type CreateLoop = (options: unknown, parts: LoopParts) => Promise<Loop>;

// What a model module gives the engine thread. The worker's start message names the module, which exports
// `createRunner` or `createLoop`. The ONNX runner and the tests' fakes use the same entry.

export interface ModelHost {
  runner: Runner;
  adapters?: AdapterHost;
  constraints?: ConstraintFactory;
  /** Frees native memory and files; called once, after the last step. */
  close?(): Promise<void>;
}

/** The export of a model module. `options` went through structured clone. `adaptersToCome`: adapters follow at once. */
export type CreateRunner = (options: unknown, adaptersToCome: boolean) => Promise<ModelHost>;

// Loads the adapters of a dead engine thread into its replacement. Folders may have changed meanwhile, so a folder
// keeps a slot only if it still has the content that requests will ask for.

interface Host {
  loadAdapter(folder: string): Promise<AdapterInfo>;
  unloadAdapter(version: string): Promise<void>;
}

/** `onFault`: called for each adapter that no folder holds any more. */
export async function reloadAdapters(
  adapters: readonly LoadedAdapter[],
  host: Host,
  onFault: (error: Error) => void,
): Promise<void> {
  const wanted = new Set(adapters.map(({ version }) => version));
  for (const { version, folders } of adapters) {
    const causes: unknown[] = [];
    for (const folder of folders) {
      try {
        const found = (await host.loadAdapter(folder)).version;
        if (found === version) break;
        if (!wanted.has(found)) await host.unloadAdapter(found);
        throw new Error("the folder has other content now");
      } catch (error) {
        causes.push(error);
      }
    }
    if (causes.length < folders.length) continue;
    const message = `adapter ${version} was not loaded again from ${folders.join(", ")}`;
    onFault(new Error(message, { cause: causes.at(-1) }));
  }
}

export class EngineLoop implements Loop {
  readonly info: ModelInfo;
  readonly #model: ModelHost;
  readonly #engine: StepEngine;
  readonly #deliver: (event: Event) => void;
  #commands: Command[] = [];
  /** Work that must not run during a forward. */
  #betweenSteps: (() => Promise<void>)[] = [];
  #awake = false;
  #lastRun: Promise<void> = Promise.resolve();
  #closed = false;
  readonly #onCrash: (error: unknown) => void;

  constructor(model: ModelHost, { options, stats, deliver, onCrash }: LoopParts) {
    const { runner } = model;
    const adapters = model.adapters ?? null;
    const onFault = (error: unknown): void => deliver({ type: "fault", error: toError(error) });
    this.#model = model;
    this.#deliver = deliver;
    this.#onCrash = onCrash;
    this.#engine = new StepEngine({
      runner,
      adapters,
      constraints: model.constraints ?? null,
      options,
      stats,
      clock: () => performance.now(),
      onFault,
    });
    this.info = {
      vocabSize: runner.vocabSize,
      maxModelLen: maxModelLen(runner),
      positionsPerBlock: runner.positionsPerBlock,
      cacheTokens: runner.numBlocks * runner.positionsPerBlock,
      linkSize: options.linkSize ?? runner.positionsPerBlock,
      policy: options.policy,
      maxLoras: adapters?.maxLoras ?? 0,
      maxLoraRank: adapters?.maxLoraRank ?? 0,
    };
  }

  send(command: Command): void {
    this.#commands.push(command);
    this.#wake();
  }

  loadAdapter(folder: string): Promise<AdapterInfo> {
    return this.#queueBetweenSteps(async () => {
      const host = this.#model.adapters;
      if (host === undefined) throw new Error("this engine serves no adapters");
      const { version, rank } = await host.load(folder);
      return { version, rank };
    });
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#queueBetweenSteps(async () => {
      if (this.#engine.usesAdapter(version)) throw new Error(`adapter ${version} still has requests`);
      await this.#model.adapters?.unload(version);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#lastRun;
    this.#engine.abortAll();
    await this.#model.close?.();
  }

  #wake(): void {
    if (this.#awake || this.#closed) return;
    this.#awake = true;
    this.#lastRun = this.#run().catch((error: unknown) => {
      this.#closed = true;
      this.#onCrash(error);
    });
  }

  async #run(): Promise<void> {
    await macrotask(); // lets a burst of commands arrive before the first step
    while (!this.#closed) {
      for (const command of takeAll(this.#commands)) this.#apply(command);
      for (const work of takeAll(this.#betweenSteps)) await work();
      if (!this.#engine.busy) {
        if (this.#commands.length > 0 || this.#betweenSteps.length > 0) continue;
        this.#awake = false;
        return;
      }
      const outputs = await this.#engine.step();
      if (outputs.length > 0) this.#deliver({ type: "outputs", outputs });
      await macrotask();
    }
  }

  #apply(command: Command): void {
    switch (command.type) {
      case "generate":
        this.#engine.submit(command.handle, command.request);
        break;
      case "stop":
        this.#engine.stop(command.handle, command.index);
        break;
      case "abort":
        this.#engine.abort(command.handle);
        break;
      case "loadAdapter":
        answer(this.#deliver, command.call, this.loadAdapter(command.folder));
        break;
      case "unloadAdapter":
        answer(
          this.#deliver,
          command.call,
          this.unloadAdapter(command.version).then(() => null),
        );
        break;
      default:
        command satisfies never;
    }
  }

  #queueBetweenSteps<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#betweenSteps.push(() => work().then(resolve, reject));
      this.#wake();
    });
  }
}

/** Answers a command of the client when the work is done. */
export function answer(deliver: (event: Event) => void, call: number, work: Promise<AdapterInfo | null>): void {
  const reply = (result: CallResult): void => deliver({ type: "reply", call, result });
  work.then(
    (adapter) => reply({ ok: true, adapter }),
    (error: unknown) => reply({ ok: false, error: toError(error), kind: kindOf(error) }),
  );
}

function takeAll<T>(list: T[]): T[] {
  return list.splice(0);
}

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function kindOf(error: unknown): (CallResult & { ok: false })["kind"] {
  if (error instanceof NoAdapterSlot) return "NoAdapterSlot";
  return error instanceof AdapterTooLarge ? "AdapterTooLarge" : null;
}
