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
