// A process that runs trainer tasks, however it was started and however messages reach it. process-trainer.ts owns it.

import { type ChildProcess, fork } from "node:child_process";
import { childEnvironment, howItEnded, LastWords } from "../../system/child-process.ts";
import type {
  LimitsTask,
  PassResult,
  PassTask,
  StepMetrics,
  TrainerLimits,
  TrainerResult,
  TrainerTask,
  UpdateResult,
  UpdateTask,
} from "../contract.ts";

// The messages between the server and a trainer process.

/** What a trainer process can do: the task that each kind of work takes, and its result. */
export interface TrainerWork {
  limits: { task: LimitsTask; result: TrainerLimits };
  train: { task: TrainerTask; result: TrainerResult };
  pass: { task: PassTask; result: PassResult };
  update: { task: UpdateTask; result: UpdateResult };
}

export type WorkMessage = {
  [Kind in keyof TrainerWork]: { type: Kind; task: TrainerWork[Kind]["task"] };
}[keyof TrainerWork];

export type ToTrainer = WorkMessage | { type: "cancel" };

export type FromTrainer =
  | { type: "step"; metrics: StepMetrics }
  | { type: "done"; result: TrainerWork[keyof TrainerWork]["result"] }
  /** `detail`: what is only for the log. */
  | { type: "failed"; message: string; detail?: string }
  | { type: "cancelled" };

export interface TrainerProcess {
  onMessage: ((message: FromTrainer) => void) | null;
  /** Called once, when the process is gone, after its last message. */
  onEnd: ((error: Error) => void) | null;
  /** Why it is gone; null while it lives. */
  readonly ended: Error | null;
  /** Does nothing when the process is gone. */
  send(message: ToTrainer): void;
  /** Ends it, whatever it does, and everything it started. Resolves when it is gone. */
  kill(): Promise<void>;
}

const NAME = "the trainer process";

// A trainer process made by `fork`: a script of ours that gets its messages over the IPC channel. It ends with its
// parent, because the channel closes.
export class ForkedProcess implements TrainerProcess {
  onMessage: ((message: FromTrainer) => void) | null = null;
  onEnd: ((error: Error) => void) | null = null;
  ended: Error | null = null;
  readonly #child: ChildProcess;
  readonly #words = new LastWords();
  readonly #gone: Promise<void>;

  /** `entry`: the script of the child; it speaks ToTrainer and FromTrainer. */
  constructor(entry: URL, env: NodeJS.ProcessEnv = childEnvironment()) {
    this.#child = fork(entry, { stdio: ["ignore", "ignore", "pipe", "ipc"], env });
    this.#child.stderr!.on("data", (chunk: Buffer) => this.#words.add(chunk));
    this.#child.on("message", (message: FromTrainer) => this.onMessage?.(message));
    this.#gone = new Promise((resolve) => {
      const end = (error: Error) => {
        if (this.ended !== null) return;
        this.ended = error;
        resolve();
        this.onEnd?.(error);
      };
      // not "exit": its last output may arrive after that
      this.#child.on("close", (code, killedBy) => end(this.#words.error(howItEnded(NAME, code, killedBy))));
      this.#child.on("error", (cause) => end(new Error(`${NAME} could not be used: ${cause.message}`, { cause })));
    });
  }

  send(message: ToTrainer): void {
    if (message.type !== "cancel") this.#words.clear();
    if (this.#child.connected) this.#child.send(message);
  }

  kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    return this.#gone;
  }
}
