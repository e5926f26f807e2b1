// The Trainer that runs each task in another process. A process stays warm for the next task, so that a training loop
// does not load the model again for every step. A process that dies fails only its own task, or the task runs again.

import { rmSync } from "node:fs";
import type {
  LimitsTask,
  PassTask,
  StepMetrics,
  Trainer,
  TrainerLimits,
  TrainerTask,
  UpdateTask,
} from "../contract.ts";
import type { FromTrainer, TrainerProcess, TrainerWork, WorkMessage } from "./trainer-process.ts";

export interface ProcessTrainerOptions {
  start: () => TrainerProcess;
  /** Idle processes end after this long, because they hold the model's weights. */
  idleMs: number;
  /** A process that does not react to a cancellation in this time is killed. */
  cancelGraceMs: number;
  /** A process that finishes no gradient step in this time is killed. Default: it may take as long as it wants. */
  stallMs?: number;
  /** Computes limits without a process. Default: a process is asked. */
  limits?: (task: LimitsTask) => TrainerLimits;
  /** How often a task is tried in all when its process is lost. Default: once. */
  tries?: number;
  /** Told when a process was lost and its task starts again. */
  onLost?: (error: Error) => void;
}

/** The process ended in the middle of its task. */
class ProcessLost extends Error {}

interface IdleProcess {
  process: TrainerProcess;
  timer: NodeJS.Timeout;
}

export class ProcessTrainer implements Trainer {
  readonly #options: ProcessTrainerOptions;
  /** Warm processes, by the model and weight type they hold. */
  readonly #idle = new Map<string, IdleProcess[]>();
  readonly #alive = new Set<TrainerProcess>();
  #closed = false;

  constructor(options: ProcessTrainerOptions) {
    this.#options = options;
  }

  async limits(task: LimitsTask) {
    if (this.#options.limits) return this.#options.limits(task);
    return this.#perform({ type: "limits", task }, () => {}, new AbortController().signal);
  }

  train(task: TrainerTask, onStep: (metrics: StepMetrics) => void, signal: AbortSignal) {
    return this.#perform({ type: "train", task }, onStep, signal);
  }

  pass(task: PassTask, signal: AbortSignal) {
    return this.#perform({ type: "pass", task }, () => {}, signal);
  }

  update(task: UpdateTask, signal: AbortSignal) {
    return this.#perform({ type: "update", task }, () => {}, signal);
  }

  async #perform<Work extends WorkMessage>(
    work: Work,
    onStep: (metrics: StepMetrics) => void,
    signal: AbortSignal,
  ): Promise<TrainerWork[Work["type"]]["result"]> {
    const key = `${work.task.weights} ${work.task.baseModel}`;
    let told = 0;
    for (let tried = 1; ; tried++) {
      // before every try: much may have happened while a lost process ended
      signal.throwIfAborted();
      if (this.#closed) throw new Error("the trainer is closed");
      const process = this.#take(key);
      let steps = 0;
      const onNewStep = (metrics: StepMetrics) => {
        // a task that runs again repeats its steps
        if (++steps <= told) return;
        told = steps;
        onStep(metrics);
      };
      try {
        const result = await this.#run(process, work, onNewStep, signal);
        this.#keep(key, process);
        return result;
      } catch (error) {
        // its state is unknown, so the next task gets a new process
        const gone = process.kill();
        if (!(error instanceof ProcessLost) || tried >= (this.#options.tries ?? 1) || this.#closed) throw error;
        await gone;
        // it may have been lost between its last file and its last word
        if ("output" in work.task) rmSync(work.task.output, { recursive: true, force: true });
        this.#options.onLost?.(error);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { timer } of [...this.#idle.values()].flat()) clearTimeout(timer);
    this.#idle.clear();
    await Promise.all([...this.#alive].map((process) => process.kill()));
  }

  #take(key: string): TrainerProcess {
    const idle = this.#idle.get(key)?.pop();
    if (idle !== undefined) {
      clearTimeout(idle.timer);
      return idle.process;
    }
    const process = this.#options.start();
    this.#alive.add(process);
    process.onEnd = () => this.#forget(process);
    return process;
  }

  #keep(key: string, process: TrainerProcess): void {
    if (this.#closed || process.ended !== null) return;
    process.onEnd = () => this.#forget(process);
    const timer = setTimeout(() => {
      // first, so that no task is given to a dying process
      this.#dropIdle(process);
      void process.kill();
    }, this.#options.idleMs);
    timer.unref();
    this.#idle.set(key, [...(this.#idle.get(key) ?? []), { process, timer }]);
  }

  #forget(process: TrainerProcess): void {
    this.#alive.delete(process);
    this.#dropIdle(process);
  }

  #dropIdle(process: TrainerProcess): void {
    for (const [key, idle] of this.#idle) {
      const others = idle.filter((other) => other.process !== process);
      if (others.length === 0) this.#idle.delete(key);
      else this.#idle.set(key, others);
    }
  }

  #run<Work extends WorkMessage>(
    process: TrainerProcess,
    work: Work,
    onStep: (metrics: StepMetrics) => void,
    signal: AbortSignal,
  ): Promise<TrainerWork[Work["type"]]["result"]> {
    const { cancelGraceMs, stallMs } = this.#options;
    return new Promise((resolve, reject) => {
      let grace: NodeJS.Timeout | null = null;
      let stall: NodeJS.Timeout | null = null;
      const settle = (finish: () => void) => {
        for (const timer of [grace, stall]) if (timer) clearTimeout(timer);
        signal.removeEventListener("abort", cancel);
        process.onMessage = null;
        process.onEnd = () => this.#forget(process);
        finish();
      };
      const expectStep = () => {
        if (stallMs === undefined) return;
        if (stall) clearTimeout(stall);
        const stalled = `the trainer process finished no gradient step in ${stallMs / 1000} seconds and was ended`;
        stall = setTimeout(() => settle(() => reject(new Error(stalled))), stallMs);
      };
      const cancel = () => {
        process.send({ type: "cancel" });
        grace = setTimeout(() => void process.kill(), cancelGraceMs);
      };
      process.onMessage = (message: FromTrainer) => {
        if (message.type === "step") {
          expectStep();
          try {
            onStep(message.metrics);
          } catch (error) {
            settle(() => reject(error));
          }
        } else if (message.type === "done") settle(() => resolve(message.result));
        else if (message.type === "failed") settle(() => reject(new Error(message.message, { cause: message.detail })));
        else settle(() => reject(signal.reason));
      };
      const end = (error: Error) => {
        this.#forget(process);
        const lost = new ProcessLost(error.message, { cause: error.cause });
        settle(() => reject(signal.aborted ? signal.reason : lost));
      };
      process.onEnd = end;
      signal.addEventListener("abort", cancel, { once: true });
      expectStep();
      if (process.ended !== null) end(process.ended);
      else process.send(work);
    });
  }
}
