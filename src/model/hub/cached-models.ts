// The models in the Hugging Face cache: what is there, how large it is, and how to remove it. Other tools share the
// cache, so it may hold models that cannot be served.

import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bytesBelow } from "../../system/files.ts";
import { isFolder } from "../checkpoint/checkpoint-file.ts";
import { type Environment, HubError, hubCacheFolder, isCommit, missingFiles, RepositoryCache } from "./hub-cache.ts";

export interface CachedModel {
  /** org/name, or a name alone for old repositories without an organisation. */
  repository: string;
  /** Folder of the snapshot of its main branch, or of the only one. */
  snapshot: string;
  /** Bytes on disk, all revisions together. */
  bytes: number;
  /** Files that are missing before it can be served. */
  missing: readonly string[];
}

export function cachedModels(env: Environment): CachedModel[] {
  const cache = hubCacheFolder(env);
  return foldersIn(cache)
    .filter((name) => name.startsWith("models--") && isFolder(join(cache, name)))
    .sort()
    .flatMap((name) => {
      const repository = name.slice("models--".length).replace("--", "/");
      const snapshot = snapshotOf(new RepositoryCache(cache, repository));
      if (snapshot === null) return [];
      const bytes = bytesBelow(join(cache, name, "blobs")) || bytesBelow(join(cache, name, "snapshots"));
      return [{ repository, snapshot, bytes, missing: missingFiles(snapshot) }];
    });
}

export function cachedModel(repository: string, env: Environment): CachedModel | null {
  return cachedModels(env).find((model) => model.repository === repository) ?? null;
}

/** Removes every revision. Returns the bytes that were freed. */
export function removeCached(repository: string, env: Environment): number {
  const found = cachedModel(repository, env);
  const cache = hubCacheFolder(env);
  if (found === null) throw new HubError(`${repository} is not in ${cache}; \`flywheel list\` shows what is`);
  const { folder } = new RepositoryCache(cache, repository);
  const blobs = join(folder, "blobs");
  if (existsSync(blobs) && readdirSync(blobs).some((name) => name.endsWith(".lock"))) {
    throw new HubError(`${repository} is being downloaded: wait, or end the download first`);
  }
  rmSync(folder, { recursive: true });
  return found.bytes;
}

function foldersIn(cache: string): string[] {
  if (!existsSync(cache)) return [];
  try {
    return readdirSync(cache);
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new HubError(`cannot read the cache folder ${cache} (${reason}): choose another --download-dir`, { cause });
  }
}

function snapshotOf(cache: RepositoryCache): string | null {
  const folder = join(cache.folder, "snapshots");
  if (!existsSync(folder)) return null;
  const commits = readdirSync(folder).filter(isCommit);
  const main = cache.commitOf("main");
  const commit = main !== null && commits.includes(main) ? main : commits[0];
  return commit === undefined ? null : cache.snapshot(commit);
}
