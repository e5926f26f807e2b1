// The engine in a worker thread, seen from the main thread. The model blocks that thread, so HTTP and streams stay
// responsive here. If the thread dies, every open request ends with an error and the thread restarts, a bounded number
// of times with growing pauses. Requests made meanwhile wait. A new thread gets the adapters of the old one.

import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import { compiledEntry } from "../../system/package.ts";
import type { Engine, EngineStats, EngineStep, GenerateRequest, Generation, ModelInfo } from "../contract.ts";
import { type SchedulingOptions, schedulingOptions } from "../scheduling.ts";
import { StatCells } from "../stats.ts";
import { type Command, EngineClient, type FromWorker, type ToWorker, type WorkerStart } from "./engine-client.ts";

export interface ModelSpec {
  /** URL of a JavaScript module that exports `createRunner` (see ModelHost in engine-loop.ts). */
  module: string;
  /** For `createRunner`, through structured clone. */
  options: unknown;
}

export interface WorkerEngineOptions {
  /** Called for every start of the thread. */
  model: () => ModelSpec;
  scheduling?: Partial<SchedulingOptions>;
  /** Called when the thread dies, when a restart fails, and for errors of no request; default: a process warning. */
  onFault?: (error: Error) => void;
  /** Pauses before restarts in a row. A thread that lives for a minute begins again with the first. */
  pausesMs?: readonly number[];
  /** Pause before each restart after those; null = the engine gives up. */
  laterMs?: number | null;
  /** How long a step may go on after `close`. Then the thread ends as soon as the model's current run does. */
  closeMs?: number;
}

const STABLE_MS = 60_000;
const PAUSES_MS = [200, 400, 800, 1600, 3200];
/** When to terminate a thread that does not end itself. Terminating it inside the runtime would abort the process. */
const STUCK_MS = 60_000;

export class WorkerEngine implements Engine {
  readonly #options: Required<WorkerEngineOptions>;
  readonly #scheduling: SchedulingOptions;
  readonly #client: EngineClient;
  readonly #cells = new StatCells();
  /** Version -> folders with that content, newest first, to load again after a restart. */
  readonly #adapters = new Map<string, Set<string>>();
  /** Called after `up` or `starts` changed. */
  onChange: (() => void) | null = null;
  #worker: Worker | null = null;
  /** Commands that wait for the next thread. */
  #backlog: Command[] = [];
  #modelInfo: ModelInfo | null = null;
  #startedAt = 0;
  #starts = 0;
  #restarts = 0;
  #state: "up" | "restarting" | "dead" | "closed" = "restarting";

  private constructor(options: WorkerEngineOptions) {
    const onFault = options.onFault ?? ((error: Error) => process.emitWarning(error));
    this.#options = { scheduling: {}, pausesMs: PAUSES_MS, laterMs: null, closeMs: 5_000, ...options, onFault };
    this.#scheduling = schedulingOptions(this.#options.scheduling);
    this.#client = new EngineClient((command) => this.#send(command), onFault);
  }

  /** Resolves when the model is ready; rejects with the reason when it cannot be loaded. */
  static async start(options: WorkerEngineOptions): Promise<WorkerEngine> {
    const engine = new WorkerEngine(options);
    await engine.#launch();
    return engine;
  }

  get info(): ModelInfo {
    return this.#modelInfo!; // set before `start` resolves
  }

  /** Whether its thread runs. */
  get up(): boolean {
    return this.#state === "up";
  }

  /** How often its thread has started. */
  get starts(): number {
    return this.#starts;
  }

  generate(request: GenerateRequest): Generation {
    return this.#client.generate(request);
  }

  async loadAdapter(folder: string): Promise<AdapterInfo> {
    const adapter = await this.#client.loadAdapter(folder);
    this.#adapters.set(adapter.version, new Set([folder, ...(this.#adapters.get(adapter.version) ?? [])]));
    return adapter;
  }

  async unloadAdapter(version: string): Promise<void> {
    try {
      await this.#client.unloadAdapter(version);
    } finally {
      this.#adapters.delete(version); // also if the thread died: the next one must not load it again
    }
  }

  steps(seen: number): EngineStep[] {
    return this.#cells.steps(seen);
  }

  stats(): EngineStats {
    return this.#cells.read();
  }

  healthy(): boolean {
    const isPassing = this.#restarts <= this.#options.pausesMs.length;
    return this.#state === "up" || (this.#state === "restarting" && isPassing);
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#state = "closed";
    this.#client.close();
    this.#backlog = [];
    if (worker === null) return;
    const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    const { closeMs } = this.#options;
    this.#post(worker, { type: "close", withinMs: closeMs });
    const timeout = delay(closeMs + STUCK_MS, "late", { ref: false });
    if ((await Promise.race([exited, timeout])) === "late") await worker.terminate();
  }

  get #closed(): boolean {
    return this.#state === "closed";
  }

  #send(command: Command): void {
    if (this.#state === "up") this.#post(this.#worker!, command);
    else if (this.#state === "restarting") this.#backlog.push(command);
  }

  #post(worker: Worker, message: ToWorker): void {
    worker.postMessage(message);
  }

  /** Starts a thread and waits until it is ready. */
  async #launch(): Promise<void> {
    const { module, options } = this.#options.model();
    const adapters = [...this.#adapters].map(([version, folders]) => ({ version, folders: [...folders] }));
    const start: WorkerStart = { module, options, scheduling: this.#scheduling, adapters, stats: this.#cells.memory };
    const entry = compiledEntry(import.meta.url, "./worker.ts");
    const worker = new Worker(entry, { workerData: start });
    this.#worker = worker;
    await new Promise<void>((resolve, reject) => {
      let cause: Error | null = null;
      worker.on("message", (message: FromWorker) => {
        if (message.type !== "ready") {
          this.#client.receive(message);
          return;
        }
        this.#modelInfo = message.info;
        resolve();
      });
      worker.on("error", (error: Error) => {
        cause = error;
      });
      worker.on("exit", (code) => {
        const error = new Error(`the engine thread ended: ${cause?.message ?? `exit code ${code}`}`, { cause });
        this.#worker = null;
        reject(error);
        if (this.#state === "up") this.#onDeath(error);
      });
    });
    if (this.#closed) return;
    this.#state = "up";
    this.#starts++;
    this.#startedAt = performance.now();
    for (const command of this.#backlog.splice(0)) this.#post(worker, command);
    this.onChange?.();
  }

  #onDeath(error: Error): void {
    this.#state = "restarting";
    for (const gauge of ["running", "waiting", "kvUsage"] as const) this.#cells.set(gauge, 0);
    if (performance.now() - this.#startedAt > STABLE_MS) this.#restarts = 0;
    this.#client.failAll(error.message);
    this.#options.onFault(error);
    this.onChange?.();
    void this.#restart();
  }

  async #restart(): Promise<void> {
    const { pausesMs, laterMs, onFault } = this.#options;
    while (true) {
      const pause = pausesMs[this.#restarts] ?? laterMs;
      if (pause === null) break;
      this.#restarts++;
      await delay(pause);
      if (this.#closed) return;
      try {
        await this.#launch();
        return;
      } catch (error) {
        if (this.#closed) return;
        onFault(error as Error);
      }
    }
    const reason = `the engine thread died and could not be restarted in ${pausesMs.length} attempts`;
    this.#state = "dead";
    this.#backlog = [];
    this.#client.failAll(reason);
    this.#client.close(reason);
  }
}
