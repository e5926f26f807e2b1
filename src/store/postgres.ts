// The store in a PostgreSQL server, which several of our servers may share. Transactions are serializable: the server ends
// one of two that get in each other's way, and it runs again here. Relaxed ones only lock the rows that they change: they
// are many and short, and would end each other all the time.

import type pg from "pg";
import { CommitUnknown } from "../errors/commit-unknown.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import { PostgresConnections, STATEMENT_MS, UNREACHABLE_MS, unavailable } from "./postgres-connections.ts";
import { isDuplicate, isTooSlow, lostConnection, lostRace } from "./postgres-errors.ts";
import { channelName, PostgresListener } from "./postgres-listener.ts";
import { forPostgres } from "./postgres-sql.ts";
import type { Sql, SqlValue, Store, TransactionOptions } from "./store.ts";
import { TRANSACTION_LIMIT_MS, TransactionScope, withinLimit } from "./transaction-scope.ts";

const MAX_TRIES = 8;
/** One that lost so many races, for example for a row that others change all the time, runs alone. */
const MAX_TRIES_BESIDE_OTHERS = 3;
/** A duplicate that is no race stays one. */
const MAX_DUPLICATES = 3;
/** The longest pause before the second try, in milliseconds; it doubles with every try. */
const RETRY_MS = 2;
/** PostgreSQL takes less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_999;

export class PostgresStore implements Store {
  readonly #connections: PostgresConnections;
  readonly #listener: PostgresListener;
  readonly #calls = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  /** `listenUrl`: for LISTEN, which needs a connection of its own all the time. */
  constructor(url: string, listenUrl: string = url) {
    this.#connections = new PostgresConnections(url);
    this.#listener = new PostgresListener(listenUrl);
  }

  /** In a transaction, so that it is serializable too. */
  run(sql: string, ...params: SqlValue[]): Promise<number> {
    return this.transaction((tx) => tx.run(sql, ...params));
  }

  async get<Row>(sql: string, ...params: SqlValue[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...params))[0];
  }

  all<Row>(sql: string, ...params: SqlValue[]): Promise<Row[]> {
    return this.#call(() => this.#read<Row>(sql, params));
  }

  transaction<R>(work: (tx: Sql) => Promise<R>, options: TransactionOptions<R> = {}): Promise<R> {
    return this.#call(() => this.#transaction(work, options));
  }

  /** A payload that is too long becomes "", which makes listeners look for themselves. */
  async notify(channel: string, payload: string): Promise<void> {
    const name = channelName(channel);
    const sent = Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES ? "" : payload;
    try {
      await this.all("SELECT pg_notify(?1, ?2)", name, sent);
    } catch (error) {
      // listeners look for themselves when they are connected again
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  listen(channel: string, heard: (payload: string) => void): () => void {
    return this.#listener.add(channel, heard);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#listener.close();
    await Promise.allSettled(this.#calls);
    await this.#connections.close();
  }

  async #call<R>(work: () => Promise<R>): Promise<R> {
    if (this.#closing !== null) throw new Error("the database is closed");
    const call = work();
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** A read whose connection is lost is repeated. */
  async #read<Row>(sql: string, params: SqlValue[]): Promise<Row[]> {
    const since = performance.now();
    for (;;) {
      const client = await this.#connections.take();
      try {
        const { rows } = await client.query(forPostgres(sql), params);
        client.release();
        return rows as Row[];
      } catch (error) {
        const lost = lostConnection(error);
        client.release(lost);
        if (!lost) throw error;
        checkPatience(since, error);
      }
    }
  }

  async #transaction<R>(work: (tx: Sql) => Promise<R>, options: TransactionOptions<R>): Promise<R> {
    const since = performance.now();
    for (let tries = 1; ; tries++) {
      const attempt = new Attempt(await this.#connections.take());
      try {
        return await attempt.run(work, options.relaxed ?? false, tries > MAX_TRIES_BESIDE_OTHERS);
      } catch (error) {
        const fault = attempt.fault ?? error;
        if (attempt.committing && lostConnection(error)) {
          const result = await this.#lookBack(options, error);
          if (result !== undefined) return result;
        } else if (lostConnection(fault)) checkPatience(since, fault);
        else if (isTooSlow(fault)) throw unavailable(fault);
        else if (lostRace(fault) && tries === MAX_TRIES) throw unavailable(fault);
        else if (!lostRace(fault) && !(isDuplicate(fault) && tries < MAX_DUPLICATES)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.random() * RETRY_MS * 2 ** tries));
    }
  }

  /** The result of a transaction whose commit got no answer; undefined = it did not take effect. */
  async #lookBack<R>({ committed }: TransactionOptions<R>, cause: unknown): Promise<R | undefined> {
    const unknown = (why: unknown) => new CommitUnknown("the database was lost during a commit", { cause: why });
    if (committed === undefined) throw unknown(cause);
    const sql: Sql = {
      run: () => Promise.reject(new Error("looking back changes nothing")),
      get: async <Row>(text: string, ...params: SqlValue[]) => (await this.#read<Row>(text, params))[0],
      all: (text, ...params) => this.#read(text, params),
    };
    try {
      // waits for the end of that transaction, which may still be going on in the server
      await sql.all(`DO $$ BEGIN LOCK TABLE ${EVERYONES_TABLE} IN EXCLUSIVE MODE; END $$`);
      return await committed(sql);
    } catch (error) {
      throw unknown(error);
    }
  }
}

/** One run of a transaction's work. */
class Attempt {
  /** Whether COMMIT was sent. */
  committing = false;
  /** The first statement that failed. After it, PostgreSQL refuses all others. */
  fault: unknown = null;
  readonly #client: pg.PoolClient;

  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  async run<R>(work: (tx: Sql) => Promise<R>, relaxed: boolean, alone: boolean): Promise<R> {
    const tx = new TransactionScope({
      run: async (sql, ...params) => (await this.#query(sql, params)).rowCount ?? 0,
      get: async <Row>(sql: string, ...params: SqlValue[]) =>
        (await this.#query(sql, params)).rows[0] as Row | undefined,
      all: async <Row>(sql: string, ...params: SqlValue[]) => (await this.#query(sql, params)).rows as Row[],
    });
    try {
      await this.#client.query(begin(relaxed, alone));
      const result = await withinLimit(work(tx), TRANSACTION_LIMIT_MS);
      tx.end();
      // the work may have caught it, but nothing of the transaction is left
      if (this.fault !== null) throw this.fault;
      this.committing = true;
      await this.#client.query("COMMIT");
      this.#client.release();
      return result;
    } catch (error) {
      tx.end();
      await this.#giveBack(error);
      throw error;
    }
  }

  async #query(sql: string, params: SqlValue[]): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(forPostgres(sql), params);
    } catch (error) {
      this.fault ??= error;
      throw error;
    }
  }

  async #giveBack(error: unknown): Promise<void> {
    if (lostConnection(error) || lostConnection(this.fault)) return this.#client.release(true);
    try {
      await this.#client.query("ROLLBACK");
      this.#client.release();
    } catch {
      // a connection that cannot roll back is closed, which does the same
      this.#client.release(true);
    }
  }
}

/** Every transaction locks it until its end. */
const EVERYONES_TABLE = "schema_version";

/**
 * One round trip. The limits free the rows that it locks when this process hangs. A transaction that runs alone waits
 * until the others have ended, and they wait for it. Nothing here takes the snapshot: it is that of the first statement.
 *
 * A relaxed transaction locks only the rows that it changes, but it waits for the disk like any other. Without that
 * (synchronous_commit = off), PostgreSQL forgets it when its own process is killed, and with it an event that a client
 * has already seen.
 */
function begin(relaxed: boolean, alone: boolean): string {
  return `BEGIN ISOLATION LEVEL ${relaxed ? "READ COMMITTED" : "SERIALIZABLE"};
    LOCK TABLE ${EVERYONES_TABLE} IN ${alone ? "EXCLUSIVE" : "ROW SHARE"} MODE;
    SET LOCAL statement_timeout = ${STATEMENT_MS};
    SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_LIMIT_MS}`;
}

/** Throws when a call has waited long enough for a server that comes and goes. */
function checkPatience(since: number, cause: unknown): void {
  if (performance.now() - since > UNREACHABLE_MS) throw unavailable(cause);
}
