// The store in a PostgreSQL server, which several of our servers may share. Transactions are serializable: the server ends
// one of two that get in each other's way, and it runs again here. Relaxed ones only lock the rows that they change: they
// are many and short, and would end each other all the time.
import type pg from "pg";
import { CommitUnknown, StoreUnreachable } from "../../errors/faults.ts";
import {
  type SqlValue,
  type Statements,
  type Store,
  TRANSACTION_LIMIT_MS,
  type TransactionOptions,
  TransactionScope,
  withinLimit,
} from "../store.ts";
import {
  isDuplicate,
  isPooled,
  isTooSlow,
  lostConnection,
  lostRace,
  PostgresConnections,
  queryOf,
  STATEMENT_MS,
  UNREACHABLE_MS,
  unavailable,
  wasNotSent,
} from "./connections.ts";
import { channelName, PostgresListener } from "./listener.ts";
import { THIS_TRANSACTION, type TransactionId, tookEffect } from "./outcome.ts";

// One run of a transaction's work on a connection to PostgreSQL.

/** What PostgreSQL was asked to commit. */
interface Committing<R> {
  id: TransactionId;
  result: R;
}

export interface AttemptOptions {
  /** Locks only the rows that it changes, instead of behaving as if it were alone. */
  rowLocks: boolean;
  /** Really is alone: the others wait for it. */
  alone: boolean;
  /** Whether a connection plans each statement only once. */
  prepares: boolean;
}

class Attempt<R> {
  /** null = COMMIT was not sent, so nothing took effect. */
  committing: Committing<R> | null = null;
  /** The first statement that failed. After it, PostgreSQL refuses all others. */
  fault: unknown = null;
  readonly #client: pg.PoolClient;

  /** Gives the connection back at the end. */
  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  async run(work: (tx: Statements) => Promise<R>, options: AttemptOptions): Promise<R> {
    const query = (sql: string, params: SqlValue[]) => this.#query(queryOf(sql, params, options.prepares));
    const tx = new TransactionScope({
      run: async (sql, ...params) => (await query(sql, params)).rowCount ?? 0,
      get: async <Row>(sql: string, ...params: SqlValue[]) => (await query(sql, params)).rows[0] as Row | undefined,
      all: async <Row>(sql: string, ...params: SqlValue[]) => (await query(sql, params)).rows as Row[],
    });
    try {
      const id = await this.#begin(options);
      const result = await withinLimit(work(tx), TRANSACTION_LIMIT_MS);
      tx.end();
      // the work may have caught it, but nothing of the transaction is left
      if (this.fault !== null) throw this.fault;
      this.committing = { id, result };
      await this.#client.query("COMMIT");
      this.#client.release();
      return result;
    } catch (error) {
      tx.end();
      await this.#giveBack(error);
      throw error;
    }
  }

  /** One round trip for several statements, each of which has its result. */
  async #begin(options: AttemptOptions): Promise<TransactionId> {
    const results = (await this.#client.query(begin(options))) as unknown as pg.QueryResult<TransactionId>[];
    return results.at(-1)!.rows[0]!;
  }

  async #query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(query);
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
 * The limits free the rows that it locks when this process hangs. A transaction that runs alone waits until the others
 * have ended, and they wait for it. Only then the last statement takes the snapshot.
 *
 * A relaxed transaction locks only the rows that it changes too, but it waits for the disk like any other. Without that
 * (synchronous_commit = off), PostgreSQL forgets it when its own process is killed, and with it an event that a client
 * has already seen.
 */
function begin({ rowLocks, alone }: AttemptOptions): string {
  return `BEGIN ISOLATION LEVEL ${rowLocks ? "READ COMMITTED" : "SERIALIZABLE"};
    LOCK TABLE ${EVERYONES_TABLE} IN ${alone ? "EXCLUSIVE" : "ROW SHARE"} MODE;
    SET LOCAL statement_timeout = ${STATEMENT_MS};
    SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_LIMIT_MS};
    ${THIS_TRANSACTION}`;
}

const MAX_TRIES = 8;
/** One that lost so many races, for example for a row that others change all the time, runs alone. */
const MAX_TRIES_BESIDE_OTHERS = 3;
/** A duplicate that is no race stays one. */
const MAX_DUPLICATES = 3;
/** The longest pause before the second try, in milliseconds; it doubles with every try. */
const RETRY_MS = 2;
/** Statements that may run twice. */
const READS = /^\s*SELECT\b/;
/** PostgreSQL takes less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_999;

export class PostgresStore implements Store {
  readonly #connections: PostgresConnections;
  readonly #listener: PostgresListener;
  readonly #calls = new Set<Promise<unknown>>();
  /** Until a pooler turns out to be in between. */
  #prepares = true;
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
    return this.#call(() => this.#statement<Row>((prepares) => queryOf(sql, params, prepares)));
  }

  transaction<R>(work: (tx: Statements) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
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
      if (!(error instanceof StoreUnreachable)) throw error;
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

  /** One statement without a transaction. When its connection is lost, it is repeated unless it may have changed something. */
  async #statement<Row>(queryOf: (prepares: boolean) => pg.QueryConfig): Promise<Row[]> {
    const since = performance.now();
    for (;;) {
      const client = await this.#connections.take();
      const prepares = this.#prepares;
      const query = queryOf(prepares);
      try {
        const { rows } = await client.query(query);
        client.release();
        return rows as Row[];
      } catch (error) {
        const lost = lostConnection(error);
        client.release(lost);
        if (prepares && isPooled(error)) {
          this.#prepares = false;
          continue;
        }
        if (!lost) throw error;
        if (!READS.test(query.text) && !wasNotSent(error)) {
          throw new CommitUnknown("the database was lost during a change", { cause: error });
        }
        checkPatience(since, error);
      }
    }
  }

  async #transaction<R>(
    work: (tx: Statements) => Promise<R>,
    { relaxed = false, rowLocks = relaxed }: TransactionOptions,
  ): Promise<R> {
    const since = performance.now();
    for (let tries = 1; ; tries++) {
      const attempt = new Attempt<R>(await this.#connections.take());
      const prepares = this.#prepares;
      try {
        return await attempt.run(work, { rowLocks, alone: tries > MAX_TRIES_BESIDE_OTHERS, prepares });
      } catch (error) {
        const { committing } = attempt;
        const fault = attempt.fault ?? error;
        if (lostConnection(fault)) {
          if (committing !== null && (await this.#tookEffect(committing.id))) return committing.result;
          checkPatience(since, fault);
        } else if (prepares && isPooled(fault)) this.#prepares = false;
        else if (isTooSlow(fault)) throw unavailable(fault);
        else if (lostRace(fault) && tries === MAX_TRIES) throw unavailable(fault);
        else if (!lostRace(fault) && !(isDuplicate(fault) && tries < MAX_DUPLICATES)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.random() * RETRY_MS * 2 ** tries));
    }
  }

  async #tookEffect(id: TransactionId): Promise<boolean> {
    try {
      return await tookEffect(id, (query) => this.#statement(() => query));
    } catch (cause) {
      throw new CommitUnknown("the database was lost during a commit", { cause });
    }
  }
}

/** Throws when a call has waited long enough for a server that comes and goes. */
function checkPatience(since: number, cause: unknown): void {
  if (performance.now() - since > UNREACHABLE_MS) throw unavailable(cause);
}
