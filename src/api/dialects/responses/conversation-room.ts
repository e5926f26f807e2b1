// What one request may load of stored responses. A conversation may be as large with all that it continues and refers to as if
// its client had sent it whole; and what all requests load together is bounded by the memory that there is.
import type { ServerResponse } from "node:http";
import { getHeapStatistics } from "node:v8";
import { ServiceError } from "../../../errors/service-error.ts";
import type { Amount, ReadingRoom } from "../../../store/tables/conversations.ts";
import { type HeldRoom, SharedRoom } from "../../generation/shared-room.ts";

/** Far beyond agents that ran for hours. */
const MOST_RESPONSES = 2_048;
const MOST_ITEMS = 8_192;
/** Larger replies are not kept: such as those with many log probabilities. In bodies of the largest size. */
const LARGEST_BODIES = 4;

export class StoredMemory {
  readonly #memory: SharedRoom;
  readonly #maxBodyBytes: number;

  /** An eighth of the heap, half of that for one client. Whatever is kept can be read. */
  constructor(maxBodyBytes: number, heap: number = getHeapStatistics().heap_size_limit) {
    this.#maxBodyBytes = maxBodyBytes;
    const limits = {
      all: Math.max(2 * this.largest, Math.floor(heap / 8)),
      each: Math.max(this.largest, Math.floor(heap / 16)),
    };
    this.#memory = new SharedRoom(limits, (whose, most) => {
      const message =
        `What ${whose} requests in progress have loaded of stored responses would take more than ${most} bytes. ` +
        "Try again later.";
      return new ServiceError("stored_responses_full", message);
    });
  }

  /** Bytes of the largest response that is kept, as JSON. */
  get largest(): number {
    return LARGEST_BODIES * this.#maxBodyBytes;
  }

  /** Room until `response` is closed. */
  hold(client: string, response: ServerResponse): HeldRoom {
    return this.#memory.hold(client, response);
  }

  /** Room for the conversation of a request. */
  conversation(client: string, response: ServerResponse): ConversationRoom {
    const most = { responses: MOST_RESPONSES, items: MOST_ITEMS, bytes: this.#maxBodyBytes };
    return new ConversationRoom(most, this.hold(client, response));
  }
}

export class ConversationRoom implements ReadingRoom {
  readonly left: Amount;
  readonly #most: Amount;
  readonly #held: HeldRoom;

  constructor(most: Amount, held: HeldRoom) {
    this.#most = most;
    this.#held = held;
    this.left = { ...most };
  }

  /** For what is about to be loaded. Throws 400, or 429 when others have loaded too much. */
  take(amount: Partial<Amount>): void {
    this.count(amount);
    this.#held.reserve(amount.bytes ?? 0);
  }

  /** For what the request has brought itself. */
  count(amount: Partial<Amount>): void {
    for (const [name, count = 0] of Object.entries(amount) as [keyof Amount, number | undefined][]) {
      this.left[name] -= count;
      if (this.left[name] >= 0) continue;
      const most = this.#most[name];
      const option = name === "bytes" ? " (--max-body-bytes)" : "";
      const message =
        `With what it continues and refers to, the conversation has ${most - this.left[name]} ${name} or more. A request ` +
        `may load ${most} ${name}${option}. Send the part that matters as input, without previous_response_id.`;
      throw new ServiceError("conversation_too_large", message, { param: "input" });
    }
  }
}
