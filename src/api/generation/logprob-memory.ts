// The memory that log-probabilities of replies take until they are sent. A reply that is not streamed collects them, and a
// client that does not read keeps them. So each reply takes room for what it may hold before it begins, and gives it back
// when its response is closed. What turns out larger takes more room as it comes. A stream has room for the next token, and
// takes more while its client does not read.
import type { ServerResponse } from "node:http";
import { getHeapStatistics } from "node:v8";
import { ServiceError } from "../../errors/service-error.ts";
import { LOGPROB_BYTES, MOST_IN_A_REPLY } from "./limits.ts";
import type { WireTokenLogprob } from "./reply.ts";
import { type HeldRoom, type RoomLimits, SharedRoom } from "./shared-room.ts";

/** Room is taken in steps of this size once a reply holds more than was expected. */
const STEP_BYTES = 2 ** 20;

/** A quarter of the heap, because text is copied while it is sent; half of that for one client. One whole reply always fits. */
export function logprobLimits(heap: number = getHeapStatistics().heap_size_limit): RoomLimits {
  const whole = MOST_IN_A_REPLY * LOGPROB_BYTES;
  return { all: Math.max(whole, Math.floor(heap / 4)), each: Math.max(whole, Math.floor(heap / 8)) };
}

export class LogprobMemory {
  readonly #memory: SharedRoom;

  constructor(limits: RoomLimits = logprobLimits()) {
    this.#memory = new SharedRoom(limits, (whose, most) => {
      const message =
        `The log probabilities of ${whose} replies in progress would take more than ${most} bytes. ` +
        "Try again later, or ask for fewer, or for a stream.";
      return new ServiceError("logprobs_full", message, { retryAfter: 1 });
    });
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#memory.taken;
  }

  /** Room for a reply in `response` with so many log-probabilities. Throws 429. */
  hold(client: string, expected: number, response: ServerResponse): HeldLogprobs {
    const room = this.#memory.hold(client, response);
    room.reserve(expected * LOGPROB_BYTES);
    return new HeldLogprobs(room);
  }
}

/** What one reply holds. */
export class HeldLogprobs {
  readonly #room: HeldRoom;
  #held = 0;
  /** Room that a stream began with. */
  #first: number | null = null;

  constructor(room: HeldRoom) {
    this.#room = room;
  }

  /** Throws 429 when there is no room for them. */
  add(entries: readonly WireTokenLogprob[]): void {
    for (const entry of entries) {
      this.#held += sizeOf(entry);
      for (const other of entry.top_logprobs) this.#held += sizeOf(other);
    }
    const missing = this.#held - this.#room.taken;
    if (missing > 0) this.#room.reserve(Math.max(STEP_BYTES, missing));
  }

  /** So many bytes of a stream wait for its reader. false: there is no room for them. */
  keep(bytes: number): boolean {
    this.#first ??= this.#room.taken;
    const wanted = Math.max(this.#first, STEP_BYTES * Math.floor(bytes / STEP_BYTES));
    try {
      this.#room.reserve(Math.max(0, wanted - this.#room.taken));
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
    this.#room.giveBack(Math.max(0, this.#room.taken - wanted));
    return true;
  }
}

/** Of its JSON. A byte of a token takes up to 6 characters in its text and 4 in `bytes`. */
function sizeOf({ token, bytes }: Pick<WireTokenLogprob, "token" | "bytes">): number {
  return 60 + token.length + 4 * (bytes?.length ?? 0);
}
