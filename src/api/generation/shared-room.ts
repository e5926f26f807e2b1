// Room that replies in progress share: memory, or places at a server that takes few requests. Each takes room before it fills it,
// and gives it back when its response is closed, so clients that ask for much, or do not read, cannot take it all: there is a bound
// for everyone together and one for each.
import type { ServerResponse } from "node:http";
import type { ServiceError } from "../../errors/service-error.ts";

export interface RoomLimits {
  /** Of all replies, and of those to one client: bytes or places. */
  all: number;
  each: number;
}

export class SharedRoom {
  readonly limits: RoomLimits;
  readonly #refusal: (whose: "your" | "all", most: number) => ServiceError;
  /** By client. */
  readonly #taken = new Map<string, number>();
  #all = 0;

  /** `refusal`: the error for one who finds no room. */
  constructor(limits: RoomLimits, refusal: (whose: "your" | "all", most: number) => ServiceError) {
    this.limits = limits;
    this.#refusal = refusal;
  }

  get taken(): number {
    return this.#all;
  }

  /** Room for the reply in `response`; none yet. */
  hold(client: string, response: ServerResponse): HeldRoom {
    const held = new HeldRoom((amount) => this.#take(client, amount));
    if (response.closed) held.release();
    else response.once("close", () => held.release());
    return held;
  }

  /** A negative amount is given back. */
  #take(client: string, amount: number): void {
    const own = (this.#taken.get(client) ?? 0) + amount;
    if (amount > 0 && own > this.limits.each) throw this.#refusal("your", this.limits.each);
    if (amount > 0 && this.#all + amount > this.limits.all) throw this.#refusal("all", this.limits.all);
    if (own > 0) this.#taken.set(client, own);
    else this.#taken.delete(client);
    this.#all += amount;
  }
}

/** What one reply holds. */
export class HeldRoom {
  readonly #take: (amount: number) => void;
  #taken = 0;
  #released = false;

  constructor(take: (amount: number) => void) {
    this.#take = take;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Throws when there is no room for so much more. */
  reserve(amount: number): void {
    if (this.#released || amount === 0) return;
    this.#take(amount);
    this.#taken += amount;
  }

  giveBack(amount: number): void {
    this.reserve(-amount);
  }

  release(): void {
    this.giveBack(this.#taken);
    this.#released = true;
  }
}
