// The database as its users see it. Every call is asynchronous, because a database may be another process. What must
// not be interrupted belongs in one transaction; between two calls outside one, anything may happen.
//
// Statements are plain SQL with parameters ?1, ?2 and so on. They keep to what SQLite and PostgreSQL have in common, except
// that FOR UPDATE SKIP LOCKED may follow a SELECT; SQLite leaves it out.
//
// A call fails with StoreUnreachable when the database cannot be reached; then nothing was changed. It fails with
// CommitUnknown when the database was lost in the middle of a change and cannot say whether it was made.

// Time as the database has it, the same for all servers: leases and heartbeats are compared with no other clock.

/** Milliseconds since 1970. */
export const DATABASE_NOW = "(SELECT now_ms FROM clock)";

// What every transaction gets: calls that end with it, and an end.

/** The calls of one transaction. They fail once `end` was called. */
export class TransactionScope implements Statements {
  readonly #sql: Statements;
  #open = true;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  end(): void {
    this.#open = false;
  }

  async run(sql: string, ...params: SqlValue[]): Promise<number> {
    return this.#inside().run(sql, ...params);
  }

  async get<Row>(sql: string, ...params: SqlValue[]): Promise<Row | undefined> {
    return this.#inside().get<Row>(sql, ...params);
  }

  async all<Row>(sql: string, ...params: SqlValue[]): Promise<Row[]> {
    return this.#inside().all<Row>(sql, ...params);
  }

  #inside(): Statements {
    if (!this.#open) throw new Error("the transaction is over: await every call inside it");
    return this.#sql;
  }
}

/** A transaction is a few statements. One that lasts this long waits for itself and would block everything else. */
export const TRANSACTION_LIMIT_MS = 10_000;

export async function withinLimit<R>(work: Promise<R>, limitMs: number): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const message = `a transaction did not end within ${limitMs / 1000} seconds: does it call the store instead of its tx?`;
    timer = setTimeout(() => reject(new Error(message)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export type SqlValue = string | number | bigint | Uint8Array | null;

/** What statements run on: the store itself, or one of its transactions. */
export interface Statements {
  /** Returns the number of rows changed. */
  run(sql: string, ...params: SqlValue[]): Promise<number>;
  /** Reads the first row. */
  get<Row>(sql: string, ...params: SqlValue[]): Promise<Row | undefined>;
  /**
   * Reads rows. Outside a transaction, a SELECT whose answer was lost is repeated. A change that returns rows is one round
   * trip there instead of a transaction's three; if its answer was lost, it fails with CommitUnknown.
   */
  all<Row>(sql: string, ...params: SqlValue[]): Promise<Row[]>;
}

export interface TransactionOptions {
  /**
   * Others may come between its statements, so it begins with a change of the row that gives it the right to the rest.
   * PostgreSQL locks only the rows that it changes (READ COMMITTED).
   */
  rowLocks?: boolean;
  /**
   * For progress and the like, never for something that was promised to a client. As with `rowLocks`, and SQLite does not
   * wait for the disk: the writes survive a crash of the process, but maybe not a power failure.
   */
  relaxed?: boolean;
}

export interface Store extends Statements {
  /**
   * Commits all of `work` or nothing. Transactions behave as if they ran one after the other. `work` may be run again
   * when it lost a race, so it changes nothing but rows, and it uses only `tx`: a call of the store itself would wait
   * for this transaction to end.
   */
  transaction<R>(work: (tx: Statements) => Promise<R>, options?: TransactionOptions): Promise<R>;
  /**
   * Hints for whoever listens, also in other servers. They may get lost, so they are never the only news of something,
   * and this never fails. Channels are lower-case words.
   */
  notify(channel: string, payload: string): Promise<void>;
  /** Calls `heard` until the returned function is called. The payload "" means: hints may have been lost, look again. */
  listen(channel: string, heard: (payload: string) => void): () => void;
  /** Waits for the calls made so far. Later ones fail. */
  close(): Promise<void>;
}
