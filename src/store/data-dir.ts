// The data directory, with the database and trained adapters. Only its owner can read it, because it contains token
// hashes and training data.
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../errors/faults.ts";
import { openSqlite } from "./sqlite.ts";
import type { Store } from "./store.ts";

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
