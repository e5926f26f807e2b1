// One server per data directory. The lock is an open transaction on a small database file of its own: the operating
// system drops it with the process, however that ends, so there is no stale lock to clean up.

import { join } from "node:path";
import Database from "libsql";
import { DataDirError } from "./data-dir-error.ts";

/** Throws if another process holds the directory. Returns what gives it back. */
export function lockDataDir(dataDir: string): () => void {
  const db = new Database(join(dataDir, "server.lock"));
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    const busy = (error as { code?: string }).code?.startsWith("SQLITE_BUSY");
    if (!busy) throw error;
    const message = `another server is using the data directory ${dataDir}; stop it or choose another --data`;
    throw new DataDirError(message, { cause: error });
  }
  return () => db.close();
}
