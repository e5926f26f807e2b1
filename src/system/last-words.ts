// The end of what a child process wrote, for the log if it dies. Clients see how it ended, and not these words.

const LENGTH = 2_000;

export class LastWords {
  #text = "";

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString()).slice(-LENGTH);
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

/** `what`: "the trainer process". */
export function howItEnded(what: string, code: number | null, killedBy: NodeJS.Signals | null): string {
  return `${what} ${killedBy ? `was ended by ${killedBy}` : `ended with code ${code}`}`;
}
