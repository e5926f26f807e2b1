// The database: libsql in WAL mode, with a schema that changes only through numbered migrations. Calls are synchronous:
// each is short, and no other code can run inside a transaction. Commands that run beside a server wait for their turn
// (busy timeout).

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";
import { MIGRATIONS, type Migration } from "./migrations.ts";

export type SqlValue = string | number | bigint | Uint8Array | null;

const BUSY_TIMEOUT_MS = 5_000;

export class Store {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement<[SqlValue[]]>>();

  constructor(db: Database.Database) {
    this.#db = db;
  }

  /** Returns the number of rows changed. */
  run(sql: string, ...params: SqlValue[]): number {
    return this.#prepare(sql).run(params).changes;
  }

  get<Row>(sql: string, ...params: SqlValue[]): Row | undefined {
    const row = this.#prepare(sql).get(params) as (Row & { _metadata?: unknown }) | undefined;
    // the driver adds its own timing to single rows
    if (row) delete row._metadata;
    return row;
  }

  all<Row>(sql: string, ...params: SqlValue[]): Row[] {
    return this.#prepare(sql).all(params) as Row[];
  }

  /** Commits all of `work` or nothing. `work` must be synchronous and must not start another transaction. */
  transaction<Result>(work: () => Result): Result {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /**
   * Runs `work` without waiting for the disk. Its writes survive a crash of the process, but maybe not a power failure.
   * For progress and the like, never for something that was promised to a client.
   */
  relaxed<Result>(work: () => Result): Result {
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      return work();
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #prepare(sql: string): Database.Statement<[SqlValue[]]> {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare<[SqlValue[]]>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Opens or creates the file and brings its schema up to date. Tests use ":memory:". */
export function openStore(file: string, migrations: readonly Migration[] = MIGRATIONS): Store {
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
  return new Store(db);
}

/** The schema version is the number of migrations applied. Each runs once, in its own transaction. */
function migrate(db: Database.Database, migrations: readonly Migration[]): void {
  const version = () => (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
  if (version() > migrations.length) {
    throw new Error(
      `the database has schema version ${version()}, newer than this program knows (${migrations.length}): ` +
        "start the newer version that wrote it, or choose another --data",
    );
  }
  for (let next = version(); next < migrations.length; next++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      // another process may have migrated while we waited for the lock
      if (version() === next) {
        db.exec(migrations[next]!.sql);
        db.exec(`PRAGMA user_version = ${next + 1}`);
      }
      db.exec("COMMIT");
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      throw new Error(`migration ${next + 1} (${migrations[next]!.name}) failed`, { cause: error });
    }
  }
}
