// Admits requests: counts them and their choices until they end, refuses when the queue is full or the server drains, and
// knows when nothing is left. This is the only entrance, so nothing can slip in while a shutdown waits.
import { invalidValue, ServiceError } from "../../errors/service-error.ts";

export interface AdmissionLimits {
  /** Choices the engine runs at once. */
  slots: number;
  /** Choices that may wait beyond that. */
  queue: number;
}

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #idle: (() => void)[] = [];
  #active = 0;
  #requests = 0;
  #draining = false;
  /** Moving average of how long one choice occupies a slot, in seconds. */
  #holdSeconds = 1;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Choices admitted and not yet ended. */
  get active(): number {
    return this.#active;
  }

  /** Requests admitted and not yet ended. */
  get requests(): number {
    return this.#requests;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Takes room for `choices`. The returned function gives it back and may be called twice. Throws 429 and 503. */
  enter(choices: number): () => void {
    if (this.#draining) throw shuttingDown();
    const room = this.#limits.slots + this.#limits.queue;
    if (choices > room) {
      throw invalidValue(`n = ${choices} choices are more than this server holds at once (${room}).`, "n");
    }
    if (this.#active + choices > room) {
      const retryAfter = this.#retryAfter(choices);
      const message = `The server is full (${this.#active} choices in progress or waiting). Try again in ${retryAfter} s.`;
      throw new ServiceError("queue_full", message, { retryAfter });
    }
    this.#active += choices;
    this.#requests++;
    const since = performance.now();
    let left = false;
    return () => {
      if (!left) {
        left = true;
        this.#leave(choices, (performance.now() - since) / 1000);
      }
    };
  }

  /** No new entries from now on. */
  drain(): void {
    this.#draining = true;
  }

  /** Resolves when nothing is in progress. */
  idle(): Promise<void> {
    return this.#active === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #leave(choices: number, seconds: number): void {
    this.#active -= choices;
    this.#requests--;
    this.#holdSeconds += 0.1 * (seconds - this.#holdSeconds);
    if (this.#active === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** Seconds until `choices` more should fit at the recent pace, between 1 and 60. */
  #retryAfter(choices: number): number {
    const over = this.#active + choices - this.#limits.slots - this.#limits.queue;
    const perSecond = Math.min(this.#active, this.#limits.slots) / Math.max(this.#holdSeconds, 0.001);
    return Math.min(60, Math.max(1, Math.ceil(over / perSecond)));
  }
}

export function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "The server is shutting down.");
}
