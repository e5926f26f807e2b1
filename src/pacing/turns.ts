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

// Long work on the main thread, such as preparing a training job, calls `giveWay` often and lets requests go first when
// its turn has lasted long enough. Turns are measured in time, because a prompt takes anything from microseconds to 100
// ms.

/** Resolves at once, or in a later turn of the event loop if this turn has lasted long enough. Rejects if cancelled. */
export type GiveWay = () => Promise<void>;

const TURN_MS = 8;

/** Shared by all jobs: only one of them continues per turn of the loop. */
const turns = new Turns();

export function givingWay(signal?: AbortSignal): GiveWay {
  let turnEnds = performance.now() + TURN_MS;
  return async () => {
    if (performance.now() >= turnEnds) {
      await turns.next();
      turnEnds = performance.now() + TURN_MS;
    }
    signal?.throwIfAborted();
  };
}

/** Runs work that pauses by yielding, and gives way in its pauses. */
export async function inTurns<T>(steps: Generator<undefined, T>, giveWay = givingWay()): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await giveWay();
  }
}

// Waits for something that others wait for too, so that one of them can leave.

/** The promise, or a rejection with the signal's reason as soon as it aborts. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
