// The data directory, with the database and trained adapters. Only its owner can read it, because it contains token
// hashes and training data.

import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "libsql";
import { OperatorError } from "../errors/faults.ts";
import { openSqlite } from "./sqlite.ts";
import type { Store } from "./store.ts";

// Allows one training server per data directory. The lock is an open transaction on a small database file. The
// operating system releases it when the process ends, even after a crash, so a lock is never stale.

const LOCK_FILE = "server.lock";

/** Throws if another process holds the lock. Returns a function that releases it. */
export function lockDataDir(dataDir: string): () => void {
  let db: Database.Database | null = null;
  try {
    db = new Database(join(dataDir, LOCK_FILE));
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    const busy = (error as { code?: string }).code?.startsWith("SQLITE_BUSY");
    const message = busy
      ? `another server is using the data directory ${dataDir}; stop it or choose another --data`
      : `cannot use the data directory ${dataDir}: ${LOCK_FILE}: ${(error as Error).message}`;
    throw new OperatorError(message, { cause: error });
  }
  return () => db.close();
}

export const DATABASE_FILE = "flywheel.db";

/** Creates the directory if needed and opens its database. Throws with the path when the directory is not writable. */
export function openDataDir(dataDir: string): Store {
  const file = join(dataDir, DATABASE_FILE);
  makeDataDir(dataDir);
  try {
    // before it is opened, because the files that the database creates beside it copy its mode
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    return openSqlite(file);
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

/** Creates the directory if needed. */
export function makeDataDir(dataDir: string): void {
  try {
    makeFolder(dataDir);
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

function unusable(dataDir: string, cause: unknown): OperatorError {
  return new OperatorError(`cannot use the data directory ${dataDir}: ${(cause as Error).message}`, { cause });
}

/** Node's recursive mkdir never returns under /proc, where a folder cannot be made although its parent exists. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  if (!existsSync(dirname(path))) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path)) throw error; // otherwise another process just made it
  }
}

// Opens the store that the options choose: a PostgreSQL database, or the file in the data directory.

/** Where the state is: in a database, or in the data directory. */
export interface StoreChoice {
  data: string;
  database: string | null;
  databaseListenUrl: string | null;
}

/** Makes the data directory only if the state is in there. */
export async function openStore(config: StoreChoice): Promise<Store> {
  if (config.database === null) return openDataDir(config.data);
  // Loaded on demand, because most servers have no use for it.
  const { openPostgres } = await import("./postgres/open.ts");
  return openPostgres(config.database, config.databaseListenUrl);
}
