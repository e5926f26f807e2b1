// Where the files of training are.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/options.ts";
import type { Store } from "../store/store.ts";
import { SharedFolder } from "../training/files/shared-folder.ts";
import { claimStorage } from "../training/files/storage-folder.ts";
import { Workspace } from "../training/files/workspace.ts";

/** What a network file system may take to show a new file to other machines. */
const VISIBLE_MS = 120_000;

export function openWorkspace(config: Config): Workspace {
  const folder = trainingFolder(config);
  return new Workspace(folder, new SharedFolder(folder, isShared(config) ? VISIBLE_MS : 0));
}

/**
 * Throws OperatorError if the folder cannot be used with this database. One inside --data belongs to the database beside
 * it; there is nothing to check.
 */
export async function checkStorage(config: Config, store: Store): Promise<void> {
  if (!isShared(config)) return;
  const folder = trainingFolder(config);
  if (config.storage === null) mkdirSync(folder, { recursive: true, mode: 0o700 });
  await claimStorage(folder, store);
}

function trainingFolder({ storage, data }: Config): string {
  return storage ?? join(data, "training");
}

/** Whether other servers may use the files. */
function isShared({ storage, database }: Config): boolean {
  return storage !== null || database !== null;
}
