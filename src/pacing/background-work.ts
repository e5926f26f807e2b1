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
