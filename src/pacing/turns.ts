// Lets one heavy piece of synchronous work (rendering, tokenising) run per turn of the event loop. When hundreds of
// requests arrive at once, running streams and timers get their turn between any two of them.

export class Turns {
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;

  /** Resolves in order of arrival, at most once per turn of the loop. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#waiting.shift()?.();
        if (this.#waiting.length > 0) this.#schedule();
      });
    }
  }
}
