// The engine on the test's own thread: the same loop and client as the worker engine, without the thread.

import type {
  Engine,
  EngineStats,
  EngineStep,
  GenerateRequest,
  Generation,
  ModelInfo,
} from "../../src/engine/contract.ts";
import { type SchedulingOptions, schedulingOptions } from "../../src/engine/scheduling.ts";
import { StatCells } from "../../src/engine/stats.ts";
import { EngineClient } from "../../src/engine/thread/engine-client.ts";
import { EngineLoop, type Loop, type LoopParts, type ModelHost } from "../../src/engine/thread/engine-loop.ts";
import type { AdapterInfo } from "../../src/model/lora/adapter-host.ts";

export interface InProcessOptions {
  scheduling?: Partial<SchedulingOptions>;
  /** Called with errors that belong to no request; default: a process warning. */
  onFault?: (error: Error) => void;
}

export class InProcessEngine implements Engine {
  readonly info: ModelInfo;
  readonly #client: EngineClient;
  readonly #loop: Loop;
  readonly #cells = new StatCells();
  #crashed = false;

  /** `model`: what runs, or what makes another loop. */
  constructor(model: ModelHost | ((parts: LoopParts) => Loop), options: InProcessOptions = {}) {
    const onCrash = (error: unknown): void => {
      this.#crashed = true;
      this.#client.failAll(`the engine failed: ${error instanceof Error ? error.message : String(error)}`);
      this.#client.close();
    };
    const parts: LoopParts = {
      options: schedulingOptions(options.scheduling ?? {}),
      stats: this.#cells,
      deliver: (event) => this.#client.receive(event),
      onCrash,
    };
    this.#loop = typeof model === "function" ? model(parts) : new EngineLoop(model, parts);
    this.#client = new EngineClient(
      (command) => this.#loop.send(command),
      options.onFault ?? ((error) => process.emitWarning(error)),
    );
    this.info = this.#loop.info;
  }

  generate(request: GenerateRequest): Generation {
    return this.#client.generate(request);
  }

  loadAdapter(folder: string): Promise<AdapterInfo> {
    return this.#client.loadAdapter(folder);
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#client.unloadAdapter(version);
  }

  steps(seen: number): EngineStep[] {
    return this.#cells.steps(seen);
  }

  stats(): EngineStats {
    return this.#cells.read();
  }

  healthy(): boolean {
    return !this.#crashed;
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#loop.close();
  }
}
