// One run of a transaction's work on a connection to PostgreSQL.

import type pg from "pg";
import { STATEMENT_MS } from "./postgres-connections.ts";
import { lostConnection } from "./postgres-errors.ts";
import { THIS_TRANSACTION, type TransactionId } from "./postgres-outcome.ts";
import { forPostgres } from "./postgres-sql.ts";
import type { Sql, SqlValue } from "./store.ts";
import { TRANSACTION_LIMIT_MS, TransactionScope, withinLimit } from "./transaction-scope.ts";

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

export class Attempt<R> {
  /** null = COMMIT was not sent, so nothing took effect. */
  committing: Committing<R> | null = null;
  /** The first statement that failed. After it, PostgreSQL refuses all others. */
  fault: unknown = null;
  readonly #client: pg.PoolClient;

  /** Gives the connection back at the end. */
  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  async run(work: (tx: Sql) => Promise<R>, options: AttemptOptions): Promise<R> {
    const query = (sql: string, params: SqlValue[]) => this.#query(forPostgres(sql, params, options.prepares));
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
