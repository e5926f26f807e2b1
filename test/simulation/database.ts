// One database for all servers: SQLite in memory, behind connections that are slow, get lost before or after a change took
// effect, or die with their server. Hints between servers come late, twice, in another order, or not at all.

import { CommitUnknown, StoreUnreachable } from "../../src/errors/faults.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { SqlValue, Statements, Store, TransactionOptions } from "../../src/store/store.ts";
import { Process, type World } from "./world.ts";

/** How likely a call meets each of them. */
export interface DatabaseFaults {
  /** The database cannot be reached: nothing is changed. */
  unavailable: number;
  /** The work of a transaction is undone and runs again. */
  again: number;
  /** It is lost in the middle of a change, which takes effect or not. */
  unknown: number;
  /** A hint does not arrive, or comes twice. */
  hint: number;
  /** A single server on a file: the disk has no room for a change. */
  full: number;
  /** The longest that a message takes, in milliseconds. */
  slowMs: number;
}

export const NO_FAULTS: DatabaseFaults = { unavailable: 0, again: 0, unknown: 0, hint: 0, full: 0, slowMs: 2 };

/** The clock of the database is that of the world. */
const SIMULATED_CLOCK = "DROP VIEW clock; CREATE TABLE clock (now_ms INTEGER); INSERT INTO clock VALUES (0);";

const READ = /^\s*SELECT\b/;

/** A transaction is undone and runs again at most so often. */
const MOST_TRIES = 3;

/** Ends a transaction without an effect. */
class Undo extends Error {}

export class Database {
  readonly process = new Process("database");
  faults = NO_FAULTS;
  /** Nobody reaches it before. */
  awayUntil = 0;
  readonly #world: World;
  readonly #inner: Store;
  readonly #listeners = new Set<{ process: Process; channel: string; heard: (payload: string) => void }>();
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  constructor(world: World) {
    this.#world = world;
    const clock = { name: "the clock of the world", sqlite: SIMULATED_CLOCK, postgres: "" };
    this.#inner = openSqlite(":memory:", [...MIGRATIONS, clock]);
  }

  /** For looks from outside, which nothing disturbs. */
  get store(): Store {
    return this.#inner;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** A connection of the current process. */
  connect(): Store {
    const process = this.#world.current;
    const statement = <R>(sql: string, work: () => Promise<R>) => this.#call(process, READ.test(sql), sql, work);
    return {
      run: (sql, ...params) => statement(sql, () => this.#inner.run(sql, ...params)),
      get: <Row>(sql: string, ...params: SqlValue[]) => statement(sql, () => this.#inner.get<Row>(sql, ...params)),
      all: <Row>(sql: string, ...params: SqlValue[]) => statement(sql, () => this.#inner.all<Row>(sql, ...params)),
      transaction: (work, options) => this.#transaction(process, work, options),
      notify: async (channel, payload) => this.#notify(process, channel, payload),
      listen: (channel, heard) => {
        const listener = { process, channel, heard };
        this.#listeners.add(listener);
        process.onDeath(() => this.#listeners.delete(listener));
        return () => this.#listeners.delete(listener);
      },
      close: async () => {},
    };
  }

  /** A statement outside a transaction. */
  #call<R>(process: Process, reads: boolean, label: string, work: () => Promise<R>): Promise<R> {
    const world = this.#world;
    return this.#exchange(process, label, async () => {
      const fault = this.#draw(reads);
      if (fault === "unavailable") throw new StoreUnreachable("simulated: the database cannot be reached");
      if (fault === "full") throw diskFull();
      // nothing may have happened, or everything
      if (fault === "unknown" && world.chance.between(0, 1) === 0) throw unknown();
      const result = await this.#inTurn(async () => {
        await this.#setClock(this.#inner, label);
        return work();
      });
      if (fault === "unknown") throw unknown();
      return result;
    });
  }

  #transaction<R>(process: Process, work: (tx: Statements) => Promise<R>, options?: TransactionOptions): Promise<R> {
    const world = this.#world;
    return this.#exchange(process, "transaction", async () => {
      for (let tries = 1; ; tries++) {
        const fault = this.#draw(false);
        if (fault === "unavailable") throw new StoreUnreachable("simulated: the database cannot be reached");
        const undone = fault === "unknown" && world.chance.between(0, 1) === 0;
        let ended = false;
        try {
          const result = await this.#inTurn(() =>
            this.#inner.transaction(async (tx) => {
              const result = await this.#inside(process, tx, work);
              ended = true;
              if (undone || (fault === "again" && tries < MOST_TRIES)) throw new Undo();
              if (fault === "full") throw diskFull();
              return result;
            }, options),
          );
          if (fault === "unknown") throw unknown();
          return result;
        } catch (error) {
          if (!process.alive) throw error;
          if (error instanceof Undo && undone) throw unknown();
          if (error instanceof Undo) continue;
          // its server did not go on in time: PostgreSQL ends the connection, and the work runs again
          const late = !ended && error instanceof Error && error.message.includes("did not end within");
          if (!late) throw error;
          if (tries >= MOST_TRIES) throw new StoreUnreachable("simulated: the connection was lost", { cause: error });
        }
      }
    });
  }

  /** Runs the work where it belongs, and undoes it when its process dies. */
  #inside<R>(process: Process, tx: Statements, work: (tx: Statements) => Promise<R>): Promise<R> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      if (!process.alive) return reject(new Undo());
      const forget = process.onDeath(() => reject(new Undo()));
      const later = <T>(sql: string, call: () => Promise<T>): Promise<T> =>
        new Promise((resolve, reject) => {
          if (world.diesHere("a statement of a transaction")) return;
          world.at(process, world.chance.between(0, 10) / 10, `tx ${sql.slice(0, 40)}`, () => {
            this.#setClock(tx, sql).then(call).then(resolve, reject);
          });
        });
      const slow: Statements = {
        run: (sql, ...params) => later(sql, () => tx.run(sql, ...params)),
        get: <Row>(sql: string, ...params: SqlValue[]) => later(sql, () => tx.get<Row>(sql, ...params)),
        all: <Row>(sql: string, ...params: SqlValue[]) => later(sql, () => tx.all<Row>(sql, ...params)),
      };
      world.at(process, 0, "work of a transaction", () => {
        work(slow)
          .then((result) => {
            if (!world.diesHere("COMMIT")) resolve(result);
          }, reject)
          .finally(forget);
      });
    });
  }

  /** A call and its answer, as messages. What the process does not live to hear stays unsaid. */
  #exchange<R>(process: Process, label: string, work: () => Promise<R>): Promise<R> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      if (world.diesHere("a call of the database")) return;
      const answer = (run: () => void) => {
        world.at(process, this.#latency(), "answer", () => {
          if (!world.diesHere("an answer of the database")) run();
        });
      };
      const away = Math.max(0, this.awayUntil - world.now);
      // a server tries to reach it for a while
      const wait = away > 0 && away < 5_000 ? away : 0;
      world.at(this.process, wait + this.#latency(), label.slice(0, 60).replace(/\s+/g, " "), () => {
        work().then(
          (result) => answer(() => resolve(result)),
          (error: unknown) => answer(() => reject(error)),
        );
      });
    });
  }

  /** One after the other. */
  async #inTurn<R>(work: () => Promise<R>): Promise<R> {
    if (this.#isTaken) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(() => this.#world.at(this.process, 0, "turn", resolve));
      });
    }
    this.#isTaken = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#isTaken = false;
    }
  }

  async #setClock(sql: Statements, statement: string): Promise<void> {
    if (statement.includes("FROM clock")) await sql.run("UPDATE clock SET now_ms = ?1", Math.floor(this.#world.now));
  }

  #draw(reads: boolean): "unavailable" | "again" | "unknown" | "full" | null {
    const world = this.#world;
    const { unavailable, again, unknown, full } = this.faults;
    const count = <Fault extends string>(fault: Fault): Fault => {
      world.count(`database ${fault}`);
      return fault;
    };
    if (world.now < this.awayUntil || world.fails(unavailable)) return count("unavailable");
    if (reads) return null;
    if (world.fails(full)) return count("full");
    if (world.fails(unknown)) return count("unknown");
    return world.fails(again) ? count("again") : null;
  }

  #latency(): number {
    return this.#world.chance.between(0, 10 * this.faults.slowMs) / 10;
  }

  #notify(from: Process, channel: string, payload: string): void {
    const world = this.#world;
    for (const listener of this.#listeners) {
      if (listener.channel !== channel) continue;
      const strikes = listener.process !== from && world.fails(this.faults.hint);
      if (strikes) world.count("hint lost or repeated");
      const copies = strikes ? world.chance.pick([0, 0, 2]) : 1;
      for (let copy = 0; copy < copies; copy++) {
        const hint = () => {
          if (this.#listeners.has(listener)) listener.heard(payload);
        };
        world.at(listener.process, world.chance.between(0, strikes ? 3_000 : 20), `hint ${channel}`, hint);
      }
    }
  }
}

function unknown(): CommitUnknown {
  return new CommitUnknown("simulated: the database was lost during a change");
}

function diskFull(): Error {
  return Object.assign(new Error("simulated: database or disk is full"), { code: "SQLITE_FULL" });
}
