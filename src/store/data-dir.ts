// The data directory: where the database and trained adapters live. Private to its owner, because the database holds
// token hashes and training data.
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { DataDirError } from "./data-dir-error.ts";
import { openStore, type Store } from "./db.ts";

export const DATABASE_FILE = "flywheel.db";

/** Creates the directory if needed and opens its database. Throws with the path when the directory is not writable. */
export function openDataDir(dataDir: string): Store {
  const file = join(dataDir, DATABASE_FILE);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    // Before it is opened: the files that the database makes beside it get its mode.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    return openStore(file);
  } catch (error) {
    throw new DataDirError(`cannot use the data directory ${dataDir}: ${(error as Error).message}`, { cause: error });
  }
}
