// One engine of a fleet, as the fleet sees it: a vLLM or Flywheel server (../remote/), or an engine in this process
// (LocalReplica). A replica runs what it is given. It does not choose, queue or retry; the fleet does.
import type { Engine, EngineOutput, EngineStats, GenerateRequest, Generation, ModelInfo } from "../contract.ts";

/**
 * "starting": it has never answered. "ready": it takes requests. "draining": it finishes what it runs and takes nothing
 * new. "away": it stopped answering; it is probed until it comes back.
 */
export type ReplicaState = "starting" | "ready" | "draining" | "away";

export interface ReplicaLoad {
  /** Requests that run or wait there, whoever sent them, as last reported. */
  requests: number;
  /** performance.now() of that report. */
  at: number;
}

/** What everybody may call a replica, by its place in the fleet: its name may be an address. */
export function replicaAlias(index: number): string {
  return `engine ${index}`;
}

export interface Replica {
  /** For logs and admins: a URL, or "engine 0". Unique in the fleet. */
  readonly name: string;
  /** Most choices to have there at once. */
  readonly maxInFlight: number;
  readonly state: ReplicaState;
  /** null until it was ready once. */
  readonly info: ModelInfo | null;
  /** Changes when the process behind it was restarted: it then has no adapters and an empty prefix cache. */
  readonly identity: string;
  /** null: it does not report. */
  readonly load: ReplicaLoad | null;
  /** Called after `state`, `identity` or `load` changed. One listener. */
  onChange: (() => void) | null;
  /**
   * Runs a request; all its choices stay here. Its adapter, if any, is loaded here. A choice that the replica lost
   * finishes with reason "error" and fault "lost"; its tokens up to then are good. A choice whose adapter the replica
   * does not know finishes with fault "unloaded".
   */
  generate(request: GenerateRequest): Generation;
  /** Loads a PEFT folder under its content version. Harmless when it is loaded. Rejects with a message for the user. */
  loadAdapter(version: string, folder: string): Promise<void>;
  /** A hint that nobody will ask for the version again. */
  unloadAdapter(version: string): Promise<void>;
  /** What its engine has counted. Absent: the fleet counts what it sends and gets. */
  stats?(): EngineStats;
  /** Ends all requests and stops probing. */
  close(): Promise<void>;
}

// An embedded engine as a replica. While its thread restarts it is unreachable, and what it ran goes on elsewhere.

/** An engine that may die and start again: WorkerEngine. */
export interface RestartingEngine extends Engine {
  readonly up: boolean;
  /** How often it has started. */
  readonly starts: number;
  onChange: (() => void) | null;
}

export class LocalReplica implements Replica {
  readonly name: string;
  readonly maxInFlight: number;
  readonly load = null;
  onChange: (() => void) | null = null;
  readonly #engine: RestartingEngine;

  constructor(name: string, engine: RestartingEngine, maxInFlight: number) {
    this.name = name;
    this.maxInFlight = maxInFlight;
    this.#engine = engine;
    engine.onChange = () => this.onChange?.();
  }

  get state(): ReplicaState {
    return this.#engine.up ? "ready" : "away";
  }

  get info(): ModelInfo {
    return this.#engine.info;
  }

  get identity(): string {
    return String(this.#engine.starts);
  }

  generate(request: GenerateRequest): Generation {
    const { identity } = this;
    const generation = this.#engine.generate(request);
    const isGone = () => this.state !== "ready" || this.identity !== identity;
    return {
      stop: (index) => generation.stop(index),
      abort: () => generation.abort(),
      async *[Symbol.asyncIterator]() {
        for await (const output of generation) yield isGone() ? asLost(output) : output;
      },
    };
  }

  async loadAdapter(version: string, folder: string): Promise<void> {
    const loaded = await this.#engine.loadAdapter(folder);
    if (loaded.version === version) return;
    await this.#engine.unloadAdapter(loaded.version);
    throw new Error(`the files in ${folder} have changed`);
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#engine.unloadAdapter(version);
  }

  stats(): EngineStats {
    return this.#engine.stats();
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}

/** An error without a fault, from an engine that has died, is its death. */
function asLost(output: EngineOutput): EngineOutput {
  if (output.type !== "tokens" || output.finish?.reason !== "error" || output.finish.fault !== undefined) return output;
  return { ...output, finish: { ...output.finish, fault: "lost" } };
}
