// Work that goes one after another, or beside everything else.

// Runs work that must not overlap. Each piece starts when the one before has ended, even if that one failed.

export class SerialWork {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when everything that was given so far has ended. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** The same for work on many things: only work with the same key waits. Keys without work cost nothing. */
export class KeyedSerialWork {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const ended: Promise<unknown> = turn
      .catch(() => undefined)
      .finally(() => {
        if (this.#last.get(key) === ended) this.#last.delete(key);
      });
    this.#last.set(key, ended);
    return turn;
  }

  /** Resolves when everything that was given so far has ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}

// Work that nobody waits for: now and then, or when something happened. A failure is reported; the next time may go
// better. Closing stops the timers and waits for what runs.
export class BackgroundWork {
  readonly #failed: (what: string, error: unknown) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Set<Promise<void>>();

  /** @param failed hears what was being done, and why it failed. */
  constructor(failed: (what: string, error: unknown) => void) {
    this.#failed = failed;
  }

  /** One run ends before the next begins. */
  every(ms: number, what: string, work: () => Promise<void>): void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      this.start(what, () =>
        work().finally(() => {
          busy = false;
        }),
      );
    }, ms);
    timer.unref();
    this.#timers.push(timer);
  }

  start(what: string, work: () => Promise<void>): void {
    const run = work()
      .catch((error: unknown) => this.#failed(what, error))
      .finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  async close(): Promise<void> {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
    await Promise.all(this.#running);
  }
}
