// The Hugging Face cache on disk, shared with every other tool that uses it:
//   <cache>/models--org--name/blobs/<hash>                the files, named by their content
//   <cache>/models--org--name/snapshots/<commit>/<file>   links to the blobs, one folder per commit
//   <cache>/models--org--name/refs/<branch or tag>        the commit it pointed to when last looked up
// Knows where things are and whether a snapshot is complete. hub-download.ts downloads.

import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { OperatorError } from "../../errors/faults.ts";
import { syncFolder, temporaryBeside, writeFileDurably } from "../../system/files.ts";
import { isFolder } from "../checkpoint/checkpoint-file.ts";
import { INDEX_FILE, readWeightMap, SINGLE_FILE } from "../checkpoint/weight-files.ts";

// Thrown when neither the hub nor its cache can provide a model. The message says what was tried and what to do.
export class HubError extends OperatorError {
  override name = "HubError";
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The cache folder the environment asks for. */
export function hubCacheFolder(env: Environment): string {
  const explicit = env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE;
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface");
  return (explicit || join(home, "hub")).replace(/^~(?=$|\/)/, homedir());
}

/** The part of the cache that belongs to one model repository ("org/name"). */
export class RepositoryCache {
  readonly folder: string;

  constructor(cacheFolder: string, repository: string) {
    this.folder = join(cacheFolder, `models--${repository.replace("/", "--")}`);
  }

  blob(hash: string): string {
    return join(this.folder, "blobs", hash);
  }

  snapshot(commit: string): string {
    return join(this.folder, "snapshots", commit);
  }

  /** The commit of a branch, tag or commit, if the cache knows it. */
  commitOf(revision: string): string | null {
    if (isCommit(revision)) return revision;
    const file = join(this.folder, "refs", revision);
    // A folder that only begins other names, as refs/pr begins pr/1.
    if (!existsSync(file) || isFolder(file)) return null;
    const commit = readFileSync(file, "utf8").trim();
    return isCommit(commit) ? commit : null;
  }

  rememberCommit(revision: string, commit: string): void {
    if (isCommit(revision)) return;
    const file = join(this.folder, "refs", revision);
    mkdirSync(dirname(file), { recursive: true });
    writeFileDurably(file, [new TextEncoder().encode(commit)]);
  }

  /** Makes a verified blob visible as a file of a snapshot. */
  publish(commit: string, name: string, hash: string): void {
    const blob = this.blob(hash);
    const link = join(this.snapshot(commit), name);
    mkdirSync(dirname(link), { recursive: true });
    const temporary = temporaryBeside(link);
    try {
      symlinkSync(relative(dirname(link), blob), temporary);
    } catch (error) {
      // File systems and Windows accounts without symbolic links get a copy, as with the Python library.
      if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
      copyFileSync(blob, temporary);
    }
    try {
      renameSync(temporary, link);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    syncFolder(dirname(link));
  }
}

/** Files that a snapshot lacks before a model can be served from it. Empty = complete. */
export function missingFiles(snapshot: string, withWeights = true): string[] {
  const absent = (name: string) => !existsSync(join(snapshot, name));
  const missing = ["config.json", "tokenizer.json"].filter(absent);
  if (!withWeights || !absent(SINGLE_FILE)) return missing;
  if (absent(INDEX_FILE)) return [...missing, SINGLE_FILE];
  return [...missing, ...shardNames(join(snapshot, INDEX_FILE)).filter(absent)];
}

/** The shard files an index lists. */
export function shardNames(indexFile: string): string[] {
  return [...new Set(readWeightMap(indexFile).values())];
}

export function isCommit(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}
