// An embedded engine as a replica. While its thread restarts it is away, and what it ran goes on elsewhere.

import type { Engine, EngineOutput, EngineStats, GenerateRequest, Generation, ModelInfo } from "../contract.ts";
import type { Replica, ReplicaState } from "./replica.ts";

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
