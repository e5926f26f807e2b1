// Where the files of training are.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/options.ts";
import type { Store } from "../store/store.ts";
import { claimStorage } from "../training/files/storage-folder.ts";

export function trainingFolder({ storage, data }: Config): string {
  return storage ?? join(data, "training");
}

/**
 * Throws OperatorError if the folder cannot be used with this database. One inside --data belongs to the database beside
 * it; there is nothing to check.
 */
export async function checkStorage(config: Config, store: Store): Promise<void> {
  if (config.storage === null && config.database === null) return;
  const folder = trainingFolder(config);
  if (config.storage === null) mkdirSync(folder, { recursive: true, mode: 0o700 });
  await claimStorage(folder, store);
}
