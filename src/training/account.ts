// The bytes that a workspace has on disk, and their limit. Whatever writes files of a workspace sets their bytes aside first, and
// gives them back when the files are gone or when rows count them (store/tables/accounts.ts).

import { randomUUID } from "node:crypto";
import type { Log } from "../observe/log.ts";
import { type AccountUse, totalOf } from "../store/tables/accounts.ts";
import type { Tables, Transaction } from "../store/tables/tables.ts";
import { TrainingError } from "./training-error.ts";

/** Files that a server leaves behind when it dies stay this long (steps/step-upkeep.ts), and so does what it reserved. */
const RESERVED_MS = 2 * 3_600_000;

/** A reservation grows at least by this, so that small writes do not ask the database each time, and by more later. */
const LEAST_GROWTH = 1 << 16;
const MOST_GROWTH = 1 << 26;

/** The part of what is left that may be set aside before it is needed. */
const AHEAD = 1 / 16;

/** Sets bytes aside, before they are written. Rejects if there is no room for them. */
export type TakeBytes = (bytes: number) => Promise<void>;

export interface AccountView {
  use: AccountUse;
  limit: number;
}

export interface AccountOptions {
  tables: Pick<Tables, "accountTable">;
  transaction: Transaction;
  server: string;
  limit: number;
  log: Log;
}

export class Account {
  readonly limit: number;
  readonly #transaction: Transaction;
  readonly #tables: Pick<Tables, "accountTable">;
  readonly #server: string;
  readonly #log: Log;
  /** Reservations of this server that somebody holds. */
  readonly #held = new Set<string>();

  /** `limit`: of one workspace. `server`: the id of this one. */
  constructor({ tables, transaction, server, limit, log }: AccountOptions) {
    this.#tables = tables;
    this.#transaction = transaction;
    this.#server = server;
    this.#log = log;
    this.limit = limit;
  }

  async view(owner: string): Promise<AccountView> {
    return { use: await this.#tables.accountTable.use(owner), limit: this.limit };
  }

  /** Nothing is set aside yet. Whoever opens it closes it. */
  open(owner: string): Reservation {
    return new Reservation(this, owner);
  }

  /** A reservation of so many bytes. */
  async reserve(owner: string, bytes: number): Promise<Reservation> {
    const reservation = this.open(owner);
    await reservation.take(bytes);
    return reservation;
  }

  /** Throws unless there is room for so many more bytes. Nobody else takes them until the transaction ends. */
  async assertRoom({ accountTable }: Tables, owner: string, bytes: number): Promise<void> {
    await accountTable.lock(owner);
    const used = totalOf(await accountTable.use(owner));
    if (used + bytes > this.limit) throw this.#full(used, bytes);
  }

  /** Sets aside at least `least` bytes under this id instead of those before, and up to `wanted` if there is much room. Returns how many. */
  set(id: string, owner: string, least: number, wanted: number): Promise<number> {
    this.#held.add(id);
    const server = this.#server;
    return this.#transaction(
      async ({ accountTable }) => {
        await accountTable.lock(owner);
        const before = await accountTable.reserved(id);
        const others = totalOf(await accountTable.use(owner)) - before;
        // what is there already may stay, even if the limit is lower now
        if (least > before && others + least > this.limit) throw this.#full(others + before, least - before);
        const ahead = Math.max(0, Math.floor(AHEAD * (this.limit - others - least)));
        const bytes = Math.min(Math.max(wanted, least), least + ahead);
        await accountTable.reserve(id, { owner, server, bytes, ms: RESERVED_MS });
        return bytes;
      },
      { relaxed: true },
    );
  }

  /** What the reservation was for is gone. If this fails, `tidy` makes up for it. */
  async release(id: string): Promise<void> {
    this.#held.delete(id);
    await this.#tables.accountTable.release(id).catch((error: unknown) => {
      this.#log.warn("bytes that nothing needs any more are still reserved", { error });
    });
  }

  /** A transaction has released it, or may have. */
  settled(id: string): void {
    this.#held.delete(id);
  }

  /** Keeps what this server holds, and releases what nobody does. */
  async tidy(): Promise<void> {
    const { accountTable } = this.#tables;
    for (const id of await accountTable.idsOf(this.#server)) if (!this.#held.has(id)) await accountTable.release(id);
    await accountTable.renew(this.#server, RESERVED_MS);
    await accountTable.releaseExpired();
  }

  #full(used: number, more: number): TrainingError {
    return new TrainingError("too_many_bytes", { used, more, limit: this.limit });
  }
}

/** Whether the limit of a workspace is the reason. */
export function isAccountFull(error: unknown): boolean {
  return error instanceof TrainingError && error.code === "too_many_bytes";
}

/** Bytes that are set aside for one thing: a request, or an attempt at a job. */
export class Reservation {
  readonly #id = randomUUID();
  readonly #account: Account;
  readonly #owner: string;
  #taken = 0;
  #reserved = 0;
  #growing: Promise<void> | null = null;

  constructor(account: Account, owner: string) {
    this.#account = account;
    this.#owner = owner;
  }

  /** For this many more bytes. */
  readonly take: TakeBytes = async (bytes) => {
    this.#taken += bytes;
    try {
      while (this.#taken > this.#reserved) {
        this.#growing ??= this.#grow().finally(() => {
          this.#growing = null;
        });
        await this.#growing;
      }
    } catch (error) {
      this.#taken -= bytes;
      throw error;
    }
  };

  /** It is for exactly so many bytes from now on. */
  async setTo(bytes: number): Promise<void> {
    if (bytes === this.#reserved) return;
    this.#reserved = await this.#account.set(this.#id, this.#owner, bytes, bytes);
    this.#taken = bytes;
  }

  /** Rows of the same transaction count the bytes from now on. `settle` follows it, even if nobody knows how it ended. */
  async releaseIn({ accountTable }: Pick<Tables, "accountTable">): Promise<void> {
    if (this.#reserved > 0) await accountTable.release(this.#id);
  }

  settle(): void {
    this.#reserved = 0;
    this.#account.settled(this.#id);
  }

  /** The files are gone. Idempotent. */
  async release(): Promise<void> {
    const reserved = this.#reserved;
    this.settle();
    if (reserved > 0) await this.#account.release(this.#id);
  }

  async #grow(): Promise<void> {
    const more = Math.min(Math.max(Math.ceil(this.#reserved / 4), LEAST_GROWTH), MOST_GROWTH);
    const wanted = Math.max(this.#taken, this.#reserved + more);
    this.#reserved = await this.#account.set(this.#id, this.#owner, this.#taken, wanted);
  }
}
