// Allows one training server per data directory. The lock is an open transaction on a small database file. The
// operating system releases it when the process ends, even after a crash, so a lock is never stale.

import { join } from "node:path";
import Database from "libsql";
import { OperatorError } from "../errors/faults.ts";

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
