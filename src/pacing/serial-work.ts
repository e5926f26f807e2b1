// Runs work that must not overlap. Each piece starts when the one before has ended, even if that one failed.

export class SerialWork {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
