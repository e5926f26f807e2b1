// Memory that replies in progress share. Each takes room before it fills it, and gives it back when its response is closed, so
// clients that ask for much, or do not read, cannot take it all: there is a bound for everyone together and one for each.
import type { ServerResponse } from "node:http";
import type { ServiceError } from "../../errors/service-error.ts";

export interface MemoryLimits {
  /** Bytes of all replies, and of those to one client. */
  all: number;
  each: number;
}

export class SharedMemory {
  readonly limits: MemoryLimits;
  readonly #refusal: (whose: "your" | "all", most: number) => ServiceError;
  /** By client. */
  readonly #taken = new Map<string, number>();
  #all = 0;

  /** `refusal`: the error for one who finds no room. */
  constructor(limits: MemoryLimits, refusal: (whose: "your" | "all", most: number) => ServiceError) {
    this.limits = limits;
    this.#refusal = refusal;
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#all;
  }

  /** Room for the reply in `response`; none yet. */
  hold(client: string, response: ServerResponse): HeldMemory {
    const held = new HeldMemory(
      (bytes) => this.#take(client, bytes),
      (bytes) => this.#giveBack(client, bytes),
    );
    if (response.closed) held.release();
    else response.once("close", () => held.release());
    return held;
  }

  #take(client: string, bytes: number): void {
    const own = (this.#taken.get(client) ?? 0) + bytes;
    if (own > this.limits.each) throw this.#refusal("your", this.limits.each);
    if (this.#all + bytes > this.limits.all) throw this.#refusal("all", this.limits.all);
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
export class HeldMemory {
  readonly #take: (bytes: number) => void;
  readonly #giveBack: (bytes: number) => void;
  #taken = 0;
  #released = false;

  constructor(take: (bytes: number) => void, giveBack: (bytes: number) => void) {
    this.#take = take;
    this.#giveBack = giveBack;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Throws 429 when there is no room for `bytes` more. */
  reserve(bytes: number): void {
    if (this.#released || bytes === 0) return;
    this.#take(bytes);
    this.#taken += bytes;
  }

  giveBack(bytes: number): void {
    this.#giveBack(bytes);
    this.#taken -= bytes;
  }

  release(): void {
    this.#released = true;
    this.#giveBack(this.#taken);
    this.#taken = 0;
  }
}
