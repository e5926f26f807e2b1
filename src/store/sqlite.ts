// The store in a file: libsql in WAL mode, with a schema that changes only through numbered migrations. There is one
// connection, so calls take turns in the order in which they were made; a transaction keeps its turn until it ends.
// Commands that run beside a server wait for their turn at the file (busy timeout).

import { EventEmitter } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";
import { MIGRATIONS, type Migration, newerSchema } from "./migrations.ts";
import {
  type SqlValue,
  type Statements,
  type Store,
  TRANSACTION_LIMIT_MS,
  type TransactionOptions,
  TransactionScope,
  withinLimit,
} from "./store.ts";

const BUSY_TIMEOUT_MS = 5_000;

/** PostgreSQL locks rows. Here a transaction has the whole file. */
const ROW_LOCKS = /\bFOR UPDATE( SKIP LOCKED)?\b/;

class SqliteStore implements Store {
  readonly #db: Database.Database;
  readonly #limitMs: number;
  readonly #statements = new Map<string, Database.Statement<[SqlValue[]]>>();
  readonly #channels = new EventEmitter().setMaxListeners(0);
  /** Whether a call has the turn. */
  #taken = false;
  readonly #waiting: (() => void)[] = [];
  #closing: Promise<void> | null = null;
  #closed = false;

  constructor(db: Database.Database, limitMs: number) {
    this.#db = db;
    this.#limitMs = limitMs;
  }

  async run(sql: string, ...params: SqlValue[]): Promise<number> {
    if (this.#taken) return this.#inTurn(() => this.#run(sql, params));
    return this.#run(sql, params);
  }

  async get<Row>(sql: string, ...params: SqlValue[]): Promise<Row | undefined> {
    if (this.#taken) return this.#inTurn(() => this.#get<Row>(sql, params));
    return this.#get<Row>(sql, params);
  }

  async all<Row>(sql: string, ...params: SqlValue[]): Promise<Row[]> {
    if (this.#taken) return this.#inTurn(() => this.#all<Row>(sql, params));
    return this.#all<Row>(sql, params);
  }

  transaction<R>(work: (tx: Statements) => Promise<R>, { relaxed = false }: TransactionOptions = {}): Promise<R> {
    return this.#inTurn(async () => {
      // cannot be changed inside a transaction
      if (relaxed) this.#db.exec("PRAGMA synchronous = NORMAL");
      try {
        return await this.#commit(work);
      } finally {
        if (relaxed) this.#db.exec("PRAGMA synchronous = FULL");
      }
    });
  }

  async notify(channel: string, payload: string): Promise<void> {
    this.#channels.emit(channel, payload);
  }

  listen(channel: string, heard: (payload: string) => void): () => void {
    this.#channels.on(channel, heard);
    return () => this.#channels.off(channel, heard);
  }

  close(): Promise<void> {
    this.#closing ??= this.#inTurn(() => {
      this.#closed = true;
      this.#statements.clear();
      this.#channels.removeAllListeners();
      this.#db.close();
    });
    return this.#closing;
  }

  async #commit<R>(work: (tx: Statements) => Promise<R>): Promise<R> {
    this.#db.exec("BEGIN IMMEDIATE");
    const tx = new TransactionScope({
      run: async (sql, ...params) => this.#run(sql, params),
      get: async <Row>(sql: string, ...params: SqlValue[]) => this.#get<Row>(sql, params),
      all: async <Row>(sql: string, ...params: SqlValue[]) => this.#all<Row>(sql, params),
    });
    try {
      const result = await withinLimit(work(tx), this.#limitMs);
      tx.end();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      tx.end();
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Waits for the turn, keeps it until `work` has ended, and gives it to the call that has waited longest. */
  async #inTurn<R>(work: () => R | Promise<R>): Promise<R> {
    if (this.#taken) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#taken = true;
    try {
      if (this.#closed) throw closed();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#taken = false;
    }
  }

  #run(sql: string, params: SqlValue[]): number {
    return this.#prepare(sql).run(params).changes;
  }

  #get<Row>(sql: string, params: SqlValue[]): Row | undefined {
    const row = this.#prepare(sql).get(params) as (Row & { _metadata?: unknown }) | undefined;
    // the driver adds its own timing to single rows
    if (row) delete row._metadata;
    return row;
  }

  #all<Row>(sql: string, params: SqlValue[]): Row[] {
    return this.#prepare(sql).all(params) as Row[];
  }

  #prepare(sql: string): Database.Statement<[SqlValue[]]> {
    if (this.#closed) throw closed();
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare<[SqlValue[]]>(sql.replace(ROW_LOCKS, ""));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Opens or creates the file and brings its schema up to date. Tests use ":memory:". */
export function openSqlite(
  file: string,
  migrations: readonly Migration[] = MIGRATIONS,
  transactionLimitMs = TRANSACTION_LIMIT_MS,
): Store {
  if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    migrate(db, migrations);
  } catch (error) {
    db.close();
    throw error;
  }
  return new SqliteStore(db, transactionLimitMs);
}

function closed(): Error {
  return new Error("the database is closed");
}

/** The schema version is the number of migrations applied. Each runs once, in its own transaction. */
function migrate(db: Database.Database, migrations: readonly Migration[]): void {
  const version = () => (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
  if (version() > migrations.length) throw new Error(newerSchema(version(), migrations.length, "--data"));
  for (let next = version(); next < migrations.length; next++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      // another process may have migrated while we waited for the lock
      if (version() === next) {
        db.exec(migrations[next]!.sqlite);
        db.exec(`PRAGMA user_version = ${next + 1}`);
      }
      db.exec("COMMIT");
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      const why = (error as Error).message;
      throw new Error(`migration ${next + 1} (${migrations[next]!.name}) failed: ${why}`, { cause: error });
    }
  }
}
