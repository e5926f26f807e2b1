// The memory that log-probabilities of replies take until they are sent. A reply that is not streamed collects them, and a
// client that does not read keeps them. So each reply takes room for what it may hold before it begins, and gives it back
// when its response is closed. What turns out larger takes more room as it comes.
import type { ServerResponse } from "node:http";
import { getHeapStatistics } from "node:v8";
import { ServiceError } from "../../errors/service-error.ts";
import { LOGPROB_BYTES, MOST_IN_A_REPLY } from "../request/logprob-request.ts";
import type { WireTokenLogprob } from "./logprobs.wire.ts";

/** Room is taken in steps of this size once a reply holds more than was expected. */
const STEP_BYTES = 2 ** 20;

export interface LogprobLimits {
  /** Bytes of all replies, and of those to one client. */
  all: number;
  each: number;
}

/** A quarter of the heap, because text is copied while it is sent; half of that for one client. One whole reply always fits. */
export function logprobLimits(heap: number = getHeapStatistics().heap_size_limit): LogprobLimits {
  const whole = MOST_IN_A_REPLY * LOGPROB_BYTES;
  return { all: Math.max(whole, Math.floor(heap / 4)), each: Math.max(whole, Math.floor(heap / 8)) };
}

export class LogprobMemory {
  readonly #limits: LogprobLimits;
  /** By client. */
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(limits: LogprobLimits = logprobLimits()) {
    this.#limits = limits;
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#all;
  }

  /** Room for a reply in `response` with so many log-probabilities. Throws 429. */
  hold(client: string, expected: number, response: ServerResponse): HeldLogprobs {
    const held = new HeldLogprobs(
      (bytes) => this.#take(client, bytes),
      (bytes) => this.#giveBack(client, bytes),
    );
    held.reserve(expected * LOGPROB_BYTES);
    if (response.closed) held.release();
    else response.once("close", () => held.release());
    return held;
  }

  #take(client: string, bytes: number): void {
    const own = (this.#taken.get(client) ?? 0) + bytes;
    const isOwn = own > this.#limits.each;
    if (isOwn || this.#all + bytes > this.#limits.all) {
      const [whose, most] = isOwn ? ["your replies", this.#limits.each] : ["all replies", this.#limits.all];
      const message =
        `The log probabilities of ${whose} in progress would take more than ${most} bytes. ` +
        "Try again later, or ask for fewer, or for a stream.";
      throw new ServiceError("logprobs_full", message, { retryAfter: 1 });
    }
    this.#taken.set(client, own);
    this.#all += bytes;
  }

  #giveBack(client: string, bytes: number): void {
    const left = (this.#taken.get(client) ?? 0) - bytes;
    if (left > 0) this.#taken.set(client, left);
    else this.#taken.delete(client);
    this.#all -= bytes;
  }
}

/** What one reply holds. */
export class HeldLogprobs {
  readonly #take: (bytes: number) => void;
  readonly #giveBack: (bytes: number) => void;
  #room = 0;
  #held = 0;
  #released = false;

  constructor(take: (bytes: number) => void, giveBack: (bytes: number) => void) {
    this.#take = take;
    this.#giveBack = giveBack;
  }

  /** Throws 429 when there is no room for `bytes` more. */
  reserve(bytes: number): void {
    if (this.#released || bytes === 0) return;
    this.#take(bytes);
    this.#room += bytes;
  }

  /** Throws 429 when they do not fit. */
  add(entries: readonly WireTokenLogprob[]): void {
    for (const entry of entries) {
      this.#held += sizeOf(entry);
      for (const other of entry.top_logprobs) this.#held += sizeOf(other);
    }
    if (this.#held > this.#room) this.reserve(Math.max(STEP_BYTES, this.#held - this.#room));
  }

  release(): void {
    this.#released = true;
    this.#giveBack(this.#room);
    this.#room = 0;
  }
}

/** Of its JSON. A byte of a token takes up to 6 characters in its text and 4 in `bytes`. */
function sizeOf({ token, bytes }: Pick<WireTokenLogprob, "token" | "bytes">): number {
  return 60 + token.length + 4 * (bytes?.length ?? 0);
}
