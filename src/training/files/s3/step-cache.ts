// The local copies of steps, bounded in size: those that were used least recently go first, and never one that is in
// use. A file counts as here once it was checked in this process, because a crash may have left half of one.
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, readdirSync, rmSync, statSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../../observe/log.ts";
import { DamagedFiles, type IsStepUsed } from "../shared-files.ts";
import { folderBytes } from "../step-folders.ts";

// What a step in a bucket consists of. The name of the step's folder ends with the digest of this list, and the list has
// the digests of the files. So whoever knows the name, which is in the step's row, can check every byte, of all the files
// or of some. A publication has an id of its own in the list: no two have the same name, even with the same files.

export interface ManifestFile {
  name: string;
  bytes: number;
  sha256: string;
}

export interface Manifest {
  publication: string;
  files: ManifestFile[];
}

/** The last object of a step to be written: a step without it is not complete. */
export const MANIFEST = "manifest.json";

const FOLDER = /^step-(\d+)-([0-9a-f]{64})$/;

export interface DescribedStep {
  folder: string;
  manifest: Manifest;
  /** What `folder` has the digest of. */
  text: Uint8Array;
}

/** Describes the files of a folder as a new publication. */
export async function describeStep(path: string, step: number): Promise<DescribedStep> {
  const files: ManifestFile[] = [];
  for (const name of (await readdir(path)).sort()) {
    const file = join(path, name);
    files.push({ name, bytes: (await stat(file)).size, sha256: await fileDigest(file) });
  }
  const manifest = { publication: randomUUID(), files };
  const text = new TextEncoder().encode(`${JSON.stringify(manifest)}\n`);
  return { folder: `step-${step}-${digestOf(text)}`, manifest, text };
}

/** Throws DamagedFiles unless this is the list that the name of the folder has the digest of. */
export function readManifest(folder: string, text: Uint8Array): Manifest {
  if (FOLDER.exec(folder)?.[2] !== digestOf(text)) throw new DamagedFiles(`${MANIFEST} of ${folder} was changed`);
  return JSON.parse(new TextDecoder().decode(text)) as Manifest;
}

/** The number of a step, from the name of its folder; null = no such name. */
export function stepOf(folder: string): number | null {
  const found = FOLDER.exec(folder);
  return found ? Number(found[1]) : null;
}

/** SHA-256 in hex. */
export async function fileDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(part as Buffer);
  return hash.digest("hex");
}

function digestOf(text: Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

interface CachedStep {
  modelId: string;
  folder: string;
  bytes: number;
  /** Files that were checked. */
  checked: Set<string>;
}

export class StepCache {
  /** Has a folder per model. */
  readonly #root: string;
  readonly #limit: number;
  readonly #log: Log;
  /** By `keyOf`, least recently used first. */
  readonly #steps = new Map<string, CachedStep>();
  #bytes = 0;
  #isUsed: IsStepUsed = () => false;
  #warned = false;

  /** Finds what an earlier process left. */
  constructor(root: string, limit: number, log: Log) {
    this.#root = root;
    this.#limit = limit;
    this.#log = log;
    const found = readdirSync(root).flatMap((modelId) =>
      readdirSync(join(root, modelId))
        .filter((folder) => stepOf(folder) !== null)
        .map((folder) => ({ modelId, folder, time: statSync(join(root, modelId, folder)).mtimeMs })),
    );
    for (const { modelId, folder } of found.sort((a, b) => a.time - b.time)) this.#step(modelId, folder);
    this.makeRoom(0);
  }

  protect(isUsed: IsStepUsed): void {
    this.#isUsed = isUsed;
  }

  pathOf(modelId: string, folder: string): string {
    return join(this.#root, modelId, folder);
  }

  /** Whether these files are here. */
  has(modelId: string, folder: string, names: readonly string[]): boolean {
    const step = this.#steps.get(keyOf(modelId, folder));
    return step !== undefined && names.every((name) => step.checked.has(name));
  }

  /** The step was used now. */
  touch(modelId: string, folder: string): void {
    this.#step(modelId, folder);
  }

  /** A file of the step is here and is what it should be. */
  add(modelId: string, folder: string, name: string): void {
    const step = this.#step(modelId, folder);
    step.checked.add(name);
    this.#measure(step);
  }

  /** Removes steps until there is room for so many bytes, or only `but` and those that are in use are left. */
  makeRoom(bytes: number, but?: string): void {
    for (const step of [...this.#steps.values()]) {
      if (this.#bytes + bytes <= this.#limit) return;
      if (step.folder !== but && !this.#uses(step)) this.#drop(step);
    }
    if (this.#bytes + bytes <= this.#limit || this.#warned) return;
    this.#warned = true;
    const sizes = { bytes: this.#bytes + bytes, limit: this.#limit };
    this.#log.warn("the steps in use are larger than --storage-cache-bytes, and stay", sizes);
  }

  /** The step, or all steps of the model, are gone. */
  forget(modelId: string, folder?: string): void {
    for (const step of [...this.#steps.values()]) {
      if (step.modelId === modelId && (folder === undefined || step.folder === folder)) this.#drop(step);
    }
  }

  /** Removes the steps that are not to be kept and that nobody uses. */
  prune(keeps: (modelId: string, folder: string) => boolean): void {
    for (const step of [...this.#steps.values()]) {
      if (!keeps(step.modelId, step.folder) && !this.#uses(step)) this.#drop(step);
    }
  }

  #uses({ modelId, folder }: CachedStep): boolean {
    return this.#isUsed(modelId, stepOf(folder)!, this.pathOf(modelId, folder));
  }

  /** The step, now the most recently used one. */
  #step(modelId: string, folder: string): CachedStep {
    const key = keyOf(modelId, folder);
    const known = this.#steps.get(key);
    const step = known ?? { modelId, folder, bytes: 0, checked: new Set<string>() };
    this.#steps.delete(key);
    this.#steps.set(key, step);
    if (!known) this.#measure(step);
    return step;
  }

  #measure(step: CachedStep): void {
    this.#bytes -= step.bytes;
    step.bytes = folderBytes(this.pathOf(step.modelId, step.folder));
    this.#bytes += step.bytes;
  }

  #drop({ modelId, folder, bytes }: CachedStep): void {
    this.#steps.delete(keyOf(modelId, folder));
    this.#bytes -= bytes;
    rmSync(this.pathOf(modelId, folder), { recursive: true, force: true });
  }
}

function keyOf(modelId: string, folder: string): string {
  return `${modelId}/${folder}`;
}
