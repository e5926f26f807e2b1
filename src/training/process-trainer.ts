// The Trainer that runs each task in a child process. A process stays warm for the next task, so that a training loop
// does not load the model again for every step. A process that dies fails only its own task. Processes end with their
// parent, because the IPC channel closes.

import { type ChildProcess, fork } from "node:child_process";
import type { PassTask, StepMetrics, Trainer, TrainerTask, UpdateTask } from "./contract.ts";
import type { FromTrainer, ToTrainer, TrainerWork, WorkMessage } from "./trainer-messages.ts";

export interface ProcessTrainerOptions {
  /** The script of the child; it speaks trainer-messages.ts. */
  entry: URL;
  /** Idle processes end after this long, because they hold the model's weights. */
  idleMs: number;
  /** A process that does not react to a cancellation in this time is killed. */
  cancelGraceMs: number;
  env?: NodeJS.ProcessEnv;
}

interface Worker {
  child: ChildProcess;
  /** The end of what the task wrote to stderr, for the log if the process dies. */
  lastWords: string;
  idleTimer: NodeJS.Timeout | null;
}

const LAST_WORDS_LENGTH = 2_000;

export class ProcessTrainer implements Trainer {
  readonly #options: ProcessTrainerOptions;
  /** Warm processes, by the model and weight type they hold. */
  readonly #idle = new Map<string, Worker[]>();
  readonly #busy = new Set<Worker>();
  #closed = false;

  constructor(options: ProcessTrainerOptions) {
    this.#options = options;
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
    signal.throwIfAborted();
    if (this.#closed) throw new Error("the trainer is closed");
    const key = `${work.task.weights} ${work.task.baseModel}`;
    const worker = this.#take(key);
    try {
      const result = await this.#run(worker, work, onStep, signal);
      this.#keep(key, worker);
      return result;
    } catch (error) {
      // its state is unknown, so the next task gets a new process
      worker.child.kill("SIGKILL");
      throw error;
    } finally {
      this.#busy.delete(worker);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const workers = [...[...this.#idle.values()].flat(), ...this.#busy];
    this.#idle.clear();
    await Promise.all(
      workers.map(async ({ child, idleTimer }) => {
        if (idleTimer) clearTimeout(idleTimer);
        if (child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        await gone;
      }),
    );
  }

  #take(key: string): Worker {
    const warm = this.#idle.get(key)?.pop() ?? this.#start();
    if (warm.idleTimer) clearTimeout(warm.idleTimer);
    warm.idleTimer = null;
    warm.lastWords = "";
    this.#busy.add(warm);
    return warm;
  }

  #start(): Worker {
    const child = fork(this.#options.entry, { stdio: ["ignore", "ignore", "pipe", "ipc"], env: this.#options.env });
    const worker: Worker = { child, lastWords: "", idleTimer: null };
    child.stderr!.on("data", (chunk: Buffer) => {
      worker.lastWords = (worker.lastWords + chunk.toString()).slice(-LAST_WORDS_LENGTH);
    });
    child.on("exit", () => this.#forget(worker));
    // it could not start, or died before a message arrived; #run tells whoever waits for it
    child.on("error", () => this.#forget(worker));
    return worker;
  }

  #keep(key: string, worker: Worker): void {
    if (this.#closed) return;
    worker.idleTimer = setTimeout(() => {
      // first, so that no task is given to a dying process
      this.#forget(worker);
      worker.child.kill("SIGKILL");
    }, this.#options.idleMs);
    worker.idleTimer.unref();
    this.#idle.set(key, [...(this.#idle.get(key) ?? []), worker]);
  }

  #forget(worker: Worker): void {
    for (const [key, workers] of this.#idle) {
      const others = workers.filter((other) => other !== worker);
      if (others.length === 0) this.#idle.delete(key);
      else this.#idle.set(key, others);
    }
  }

  #run<Work extends WorkMessage>(
    worker: Worker,
    work: Work,
    onStep: (metrics: StepMetrics) => void,
    signal: AbortSignal,
  ): Promise<TrainerWork[Work["type"]]["result"]> {
    const { child } = worker;
    return new Promise((resolve, reject) => {
      let grace: NodeJS.Timeout | null = null;
      const settle = (finish: () => void) => {
        if (grace) clearTimeout(grace);
        signal.removeEventListener("abort", cancel);
        child.off("message", onMessage);
        child.off("close", onExit);
        child.off("error", onError);
        finish();
      };
      const onMessage = (message: FromTrainer) => {
        if (message.type === "step") {
          try {
            onStep(message.metrics);
          } catch (error) {
            settle(() => reject(error));
          }
        } else if (message.type === "done") settle(() => resolve(message.result));
        else if (message.type === "failed") settle(() => reject(new Error(message.message)));
        else settle(() => reject(signal.reason));
      };
      const onExit = (code: number | null, killedBy: NodeJS.Signals | null) => {
        const how = killedBy ? `was ended by ${killedBy}` : `ended with code ${code}`;
        const words = worker.lastWords.trim();
        // clients see the message, so what the process wrote is only its cause
        const error = new Error(
          `the trainer process ${how}${words ? "; its last output is in the server's log" : ""}`,
          words ? { cause: words } : {},
        );
        settle(() => reject(signal.aborted ? signal.reason : error));
      };
      const onError = (cause: Error) => {
        settle(() => reject(new Error(`the trainer process could not be used: ${cause.message}`, { cause })));
      };
      const send = (message: ToTrainer) => {
        if (child.connected) child.send(message);
      };
      const cancel = () => {
        send({ type: "cancel" });
        grace = setTimeout(() => child.kill("SIGKILL"), this.#options.cancelGraceMs);
      };
      child.on("message", onMessage);
      // not "exit": its last output may arrive after that
      child.on("close", onExit);
      child.on("error", onError);
      signal.addEventListener("abort", cancel, { once: true });
      if (child.exitCode !== null || child.signalCode !== null) onExit(child.exitCode, child.signalCode);
      else send(work);
    });
  }
}
