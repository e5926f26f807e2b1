// A step engine driven by hand: one `step` at a time, with an integrity check after each. Sorts outputs by request.

import type { EngineOutput, EngineStats, GenerateRequest } from "../../src/engine/contract.ts";
import { StepEngine } from "../../src/engine/engine.ts";
import { type SchedulingOptions, schedulingOptions } from "../../src/engine/scheduling.ts";
import { StatCells } from "../../src/engine/stats.ts";
import type { ConstraintFactory } from "../../src/grammar/match/sequence-constraint.ts";
import type { AdapterHost } from "../../src/model/lora/adapter-host.ts";
import type { Runner } from "../../src/model/runner.ts";

export interface DriverOptions extends Partial<SchedulingOptions> {
  constraints?: ConstraintFactory;
  adapters?: AdapterHost;
}

export class EngineDriver {
  readonly engine: StepEngine;
  readonly outputs = new Map<number, EngineOutput[]>();
  /** The engine's current time in milliseconds. */
  now = 0;
  readonly #cells = new StatCells();
  #lastHandle = 0;

  constructor(runner: Runner, { constraints, adapters, ...scheduling }: DriverOptions = {}) {
    const onFault = (error: unknown): void => {
      throw error;
    };
    this.engine = new StepEngine({
      runner,
      adapters: adapters ?? null,
      constraints: constraints ?? null,
      options: schedulingOptions(scheduling),
      stats: this.#cells,
      clock: () => this.now,
      onFault,
    });
  }

  submit(request: GenerateRequest): number {
    const handle = ++this.#lastHandle;
    this.outputs.set(handle, []);
    this.engine.submit(handle, request);
    return handle;
  }

  async step(): Promise<void> {
    const outputs = await this.engine.step();
    this.engine.checkIntegrity();
    for (const { handle, output } of outputs) this.outputs.get(handle)!.push(output);
  }

  async finish(maxSteps = 10_000): Promise<void> {
    for (let i = 0; this.engine.busy; i++) {
      if (i === maxSteps) throw new Error(`still busy after ${maxSteps} steps`);
      await this.step();
    }
  }

  /** Submits a request, runs it to the end and returns its outputs. */
  async run(request: GenerateRequest): Promise<EngineOutput[]> {
    const handle = this.submit(request);
    await this.finish();
    return this.outputs.get(handle)!;
  }

  stats(): EngineStats {
    return this.#cells.read();
  }
}
