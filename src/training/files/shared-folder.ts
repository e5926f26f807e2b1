// Shared files in a folder that every server sees: a local one of a single server, or one on a network file system. A step
// appears by renaming a folder whose files are already on disk.

import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, utimesSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { syncFolder } from "../../system/files.ts";
import { type Cleared, clearLeftovers, type KnownFiles, removedName } from "./leftovers.ts";
import { type Access, hasFile, type SharedFile, type SharedFiles, type StepParts } from "./shared-files.ts";

// Waits for the files of a step. On a shared folder they may become visible seconds after another server has written
// them: network file systems remember for a while what was not there.

const FILES = ["adapter_config.json", "adapter_model.safetensors"];
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 8000;

/** Resolves to whether the adapter in this folder can be seen, at once if it can. Rejects when `signal` aborts. */
export async function becomesVisible(folder: string, patienceMs: number, signal?: AbortSignal): Promise<boolean> {
  const until = performance.now() + patienceMs;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    if (FILES.every((name) => hasFile(join(folder, name)))) return true;
    const left = until - performance.now();
    if (left <= 0) return false;
    await delay(Math.min(wait, left), undefined, signal ? { signal } : {});
  }
}

export class SharedFolder implements SharedFiles {
  readonly #root: string;
  /** How long files may stay invisible after another server made them, in milliseconds. */
  readonly #visibleMs: number;

  constructor(root: string, visibleMs: number) {
    this.#root = root;
    this.#visibleMs = visibleMs;
  }

  async publishStep(staging: string, modelId: string, step: number, digest: string): Promise<string> {
    syncTree(staging);
    const folder = this.#moveTo(modelId, `step-${step}-${digest.slice(0, 12)}`, staging);
    try {
      // whoever clears away files without a row goes by their age
      const now = new Date();
      utimesSync(this.#stepFolder(modelId, folder), now, now);
      syncFolder(join(this.#root, "models", modelId));
      syncFolder(join(this.#root, "models"));
    } catch (error) {
      // nobody has heard of it
      renameSync(this.#stepFolder(modelId, folder), staging);
      throw error;
    }
    return folder;
  }

  async fetchStep(modelId: string, folder: string, _parts: StepParts, { signal }: Access): Promise<void> {
    if (this.#visibleMs > 0) await becomesVisible(this.#stepFolder(modelId, folder), this.#visibleMs, signal);
  }

  async share(): Promise<void> {}

  async fetch(): Promise<void> {}

  async removeFile(path: string): Promise<void> {
    rmSync(join(this.#root, path), { force: true });
  }

  async removeFolder(path: string): Promise<void> {
    let folder = join(this.#root, path);
    if (dirname(path) === "models" && existsSync(folder)) {
      // so that a start recognises a model that a crash left half deleted
      const going = join(this.#root, "models", removedName(basename(path)));
      rmSync(going, { recursive: true, force: true });
      renameSync(folder, going);
      folder = going;
    }
    await rm(folder, { recursive: true, force: true });
  }

  async list(path: string): Promise<SharedFile[]> {
    const found: SharedFile[] = [];
    for (const entry of (await ifThere(readdir(join(this.#root, path), { withFileTypes: true }))) ?? []) {
      const inside = `${path}/${entry.name}`;
      if (entry.isDirectory()) found.push(...(await this.list(inside)));
      else {
        const stats = await ifThere(stat(join(this.#root, inside)));
        if (stats) found.push({ path: inside, bytes: stats.size, writtenAt: stats.mtimeMs });
      }
    }
    return found;
  }

  async clear(known: KnownFiles, minAgeMs: number): Promise<Cleared> {
    return clearLeftovers(this.#root, known, minAgeMs);
  }

  /** What is used stays anyway: nothing goes before its row, and then it has its grace. */
  protect(): void {}

  /** Returns the name that it got: `name`, with a number if that is taken. A folder is never replaced. */
  #moveTo(modelId: string, name: string, staging: string): string {
    for (let n = 1; ; n++) {
      const folder = n === 1 ? name : `${name}-${n}`;
      try {
        // refused while the target has files
        if (!existsSync(this.#stepFolder(modelId, folder))) {
          renameSync(staging, this.#stepFolder(modelId, folder));
          return folder;
        }
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
    }
  }

  #stepFolder(modelId: string, folder: string): string {
    return join(this.#root, "models", modelId, folder);
  }
}

/** Another server may remove a file at any time. */
function ifThere<T>(found: Promise<T>): Promise<T | null> {
  return found.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

function isTaken(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOTEMPTY" || code === "EEXIST";
}

function syncTree(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = openSync(join(folder, name), "r+");
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
  syncFolder(folder);
}
