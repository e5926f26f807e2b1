// A trainer process made by `fork`: a script of ours that gets its messages over the IPC channel. It ends with its
// parent, because the channel closes.

import { type ChildProcess, fork } from "node:child_process";
import { childEnvironment } from "../../system/child-environment.ts";
import type { FromTrainer, ToTrainer } from "../trainer-messages.ts";
import { howItEnded, LastWords, type TrainerProcess } from "./trainer-process.ts";

export class ForkedProcess implements TrainerProcess {
  onMessage: ((message: FromTrainer) => void) | null = null;
  onEnd: ((error: Error) => void) | null = null;
  ended: Error | null = null;
  readonly #child: ChildProcess;
  readonly #words = new LastWords();
  readonly #gone: Promise<void>;

  /** `entry`: the script of the child; it speaks trainer-messages.ts. */
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
      this.#child.on("close", (code, killedBy) => end(this.#words.error(howItEnded(code, killedBy))));
      this.#child.on("error", (cause) =>
        end(new Error(`the trainer process could not be used: ${cause.message}`, { cause })),
      );
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
