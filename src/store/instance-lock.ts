// One training server per data directory. The lock is an open transaction on a small database file of its own: the operating
// system drops it with the process, however that ends, so there is no stale lock to clean up.

import { join } from "node:path";
import Database from "libsql";
import { OperatorError } from "../errors/operator-error.ts";

const LOCK_FILE = "server.lock";

/** Throws if another process holds the directory. Returns what gives it back. */
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
