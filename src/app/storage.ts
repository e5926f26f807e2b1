// Where the files of training are: a folder, or an S3 bucket with a local folder for copies.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/options.ts";
import { s3Place } from "../config/s3-url.ts";
import type { Log } from "../observe/log.ts";
import { lockDataDir, makeDataDir } from "../store/data-dir.ts";
import type { Store } from "../store/store.ts";
import { claimStorage, FolderMarker } from "../training/files/claim-storage.ts";
import { SharedFolder } from "../training/files/shared-folder.ts";
import { StepFolders } from "../training/files/step-folders.ts";

/** What a network file system may take to show a new file to other machines. */
const VISIBLE_MS = 120_000;

export interface OpenedStepFolders {
  workspace: StepFolders;
  close(): void;
}

export async function openStepFolders(config: Config, log: Log): Promise<OpenedStepFolders> {
  const folder = trainingFolder(config);
  const place = bucketOf(config);
  if (!place) {
    const shared = new SharedFolder(folder, isShared(config) ? VISIBLE_MS : 0);
    return { workspace: new StepFolders(folder, shared), close: () => {} };
  }
  const { openBucket } = await import("../training/files/s3/open-bucket.ts");
  const { SharedBucket } = await import("../training/files/s3/shared-bucket.ts");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (config.engineUrl.length > 0) {
    log.warn("engines load adapters by path: each must see this folder at the same path", { folder });
  }
  // what a server makes here, another one would clear away
  const unlock = lockDataDir(folder);
  try {
    const settings = { folder, cacheBytes: config.storageCacheBytes, log };
    return { workspace: new StepFolders(folder, new SharedBucket(await openBucket(place), settings)), close: unlock };
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * Throws OperatorError if the storage cannot be used with this database. A folder inside --data belongs to the database
 * beside it; there is nothing to check.
 */
export async function checkStorage(config: Config, store: Store): Promise<void> {
  if (!isShared(config)) return;
  const place = bucketOf(config);
  if (place) {
    const { openBucket } = await import("../training/files/s3/open-bucket.ts");
    const { BucketMarker } = await import("../training/files/s3/bucket-marker.ts");
    return claimStorage(new BucketMarker(await openBucket(place)), store);
  }
  const folder = trainingFolder(config);
  if (config.storage === null) {
    makeDataDir(config.data);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  await claimStorage(new FolderMarker(folder), store);
}

/** The folder of the files, or of copies of those in a bucket. */
function trainingFolder(config: Config): string {
  const { storage, data } = config;
  if (bucketOf(config)) return join(data, "storage-cache");
  return storage ?? join(data, "training");
}

function bucketOf({ storage }: Config) {
  return storage === null ? null : s3Place(storage);
}

/** Whether other servers may use the files. */
function isShared({ storage, database }: Config): boolean {
  return storage !== null || database !== null;
}
