// A process that runs trainer tasks, however it was started and however messages reach it. process-trainer.ts owns it.

import type { FromTrainer, ToTrainer } from "../trainer-messages.ts";

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

const LAST_WORDS_LENGTH = 2_000;

/** Keeps the end of what a process wrote, for the log if it dies. */
export class LastWords {
  #text = "";

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString()).slice(-LAST_WORDS_LENGTH);
  }

  clear(): void {
    this.#text = "";
  }

  /** Clients see the message, so what the process wrote is only its cause. */
  error(message: string): Error {
    const words = this.#text.trim();
    return words === ""
      ? new Error(message)
      : new Error(`${message}; the server's log has its last words`, { cause: words });
  }
}

export function howItEnded(code: number | null, killedBy: NodeJS.Signals | null): string {
  return `the trainer process ${killedBy ? `was ended by ${killedBy}` : `ended with code ${code}`}`;
}
