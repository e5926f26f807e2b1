// Shared files in an S3 bucket. Every server has a local copy of the steps that it uses, bounded in size; the data of jobs,
// their records and gradients are here only while somebody works on them. Steps never change and their names come from their content
// (step-cache.ts), so they are written once and every byte is checked when it is read. The local folder belongs to this
// process. Curves, staging folders and what a trainer reads and writes stay in it.

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { StorageUnavailable } from "../../../errors/faults.ts";
import type { Log } from "../../../observe/log.ts";
import { orAborted } from "../../../pacing/turns.ts";
import { isTemporaryName, temporaryBeside } from "../../../system/files.ts";
import { OPTIMIZER_FILE } from "../../contract.ts";
import { type Cleared, isStaging, type KnownFiles, lastChange } from "../leftovers.ts";
import {
  type Access,
  DamagedFiles,
  hasFile,
  type IsStepUsed,
  type SharedFile,
  type SharedFiles,
  type StepParts,
} from "../shared-files.ts";
import type { S3Bucket } from "./bucket.ts";
import { BucketLeftovers } from "./bucket-leftovers.ts";
import {
  describeStep,
  fileDigest,
  MANIFEST,
  type Manifest,
  type ManifestFile,
  readManifest,
  StepCache,
} from "./step-cache.ts";

export interface BucketSettings {
  /** A local folder that only this process uses. */
  folder: string;
  /** Bound for the local copies of steps. */
  cacheBytes: number;
  log: Log;
  /** How long a job waits for a bucket that is unreachable, in milliseconds. */
  patienceMs?: number;
}

const PATIENCE_MS = 900_000;
const FRESH_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export class SharedBucket implements SharedFiles {
  readonly #bucket: S3Bucket;
  readonly #root: string;
  readonly #cache: StepCache;
  readonly #leftovers: BucketLeftovers;
  readonly #patienceMs: number;
  readonly #log: Log;
  /** What is being brought here, by path and parts. */
  readonly #coming = new Map<string, Promise<void>>();
  /** Of the steps that are or were here, by path. */
  readonly #manifests = new Map<string, Manifest>();

  constructor(bucket: S3Bucket, { folder, cacheBytes, log, patienceMs = PATIENCE_MS }: BucketSettings) {
    this.#bucket = bucket;
    this.#root = folder;
    this.#log = log;
    this.#patienceMs = patienceMs;
    clearScratch(folder);
    this.#cache = new StepCache(join(folder, "models"), cacheBytes, log);
    this.#leftovers = new BucketLeftovers(bucket);
  }

  async publishStep(staging: string, modelId: string, step: number, _digest: string, access: Access): Promise<string> {
    const { folder, manifest, text } = await describeStep(staging, step);
    const path = `models/${modelId}/${folder}`;
    try {
      await this.#patiently(access, async () => {
        for (const file of manifest.files) {
          const local = { ...file, path: join(staging, file.name) };
          await this.#bucket.put(`${path}/${file.name}`, local, { isNew: true, signal: access.signal });
        }
        await this.#bucket.putBytes(`${path}/${MANIFEST}`, text, { isNew: true, signal: access.signal });
      });
    } catch (error) {
      // what is left in a bucket that is unreachable is cleared away later
      if (error instanceof StorageUnavailable && error.passing) throw error;
      await this.#removeObjects(path).catch((left: unknown) => {
        this.#log.warn("objects of a step that was not published are still there", { path, error: left });
      });
      throw error;
    }
    this.#cache.makeRoom(sum(manifest.files));
    renameSync(staging, join(this.#root, path));
    this.#manifests.set(path, manifest);
    for (const { name } of manifest.files) this.#cache.add(modelId, folder, name);
    return folder;
  }

  async fetchStep(modelId: string, folder: string, parts: StepParts, access: Access): Promise<void> {
    const path = `models/${modelId}/${folder}`;
    const known = this.#manifests.get(path);
    if (known && this.#cache.has(modelId, folder, namesOf(known, parts))) {
      this.#cache.touch(modelId, folder);
      return;
    }
    await this.#patiently(access, () =>
      this.#once(`${path} ${parts}`, access, () => this.#bring(modelId, folder, parts)),
    );
  }

  async share(path: string, access: Access): Promise<void> {
    const local = join(this.#root, path);
    const file = { path: local, bytes: (await stat(local)).size, sha256: await fileDigest(local) };
    await this.#patiently(access, () => this.#bucket.put(path, file, { isNew: false, signal: access.signal }));
    // another server may be the next to need it, and the last
    await rm(local, { force: true });
  }

  async fetch(path: string, access: Access): Promise<void> {
    const local = join(this.#root, path);
    // others may replace or remove the file, but nobody minds a minute
    if (hasFile(local) && Date.now() - lastChange(local) < FRESH_MS) return;
    await this.#patiently(access, () =>
      this.#once(path, access, async () => {
        if (!(await this.#download(path, null))) await rm(local, { force: true });
      }),
    );
  }

  async removeFile(path: string): Promise<void> {
    await rm(join(this.#root, path), { force: true });
    await this.#bucket.remove(path);
  }

  async removeFolder(path: string): Promise<void> {
    const [kind, id, folder] = path.split("/");
    if (kind === "models") this.#cache.forget(id!, folder);
    await rm(join(this.#root, path), { recursive: true, force: true });
    await this.#removeObjects(path);
  }

  async list(path: string): Promise<SharedFile[]> {
    const found: SharedFile[] = [];
    for await (const { key, bytes, modified } of this.#bucket.list(`${path}/`)) {
      found.push({ path: key, bytes, writtenAt: modified });
    }
    return found;
  }

  async clear(known: KnownFiles, minAgeMs: number): Promise<Cleared> {
    const keeps = (modelId: string, folder: string) =>
      known.models.get(modelId)?.folders.has(folder) === true ||
      known.removed.has(join(modelId, folder)) ||
      known.removed.has(modelId);
    this.#cache.prune(keeps);
    for (const path of this.#manifests.keys()) {
      const [, modelId, folder] = path.split("/");
      if (!keeps(modelId!, folder!)) this.#manifests.delete(path);
    }
    const clearOld = (...path: string[]) => {
      const local = join(this.#root, ...path);
      if (Date.now() - lastChange(local) >= minAgeMs) rmSync(local, { recursive: true, force: true });
    };
    // the data of a job that is not known yet may still be arriving
    for (const job of namesIn(join(this.#root, "jobs"))) if (!known.jobs.has(job)) clearOld("jobs", job);
    for (const model of namesIn(join(this.#root, "records"))) {
      for (const job of namesIn(join(this.#root, "records", model))) clearOld("records", model, job);
    }
    return this.#leftovers.clear(known, minAgeMs);
  }

  protect(isUsed: IsStepUsed): void {
    this.#cache.protect(isUsed);
  }

  /** Brings files of a step here and checks them. Those that are here already are only checked. */
  async #bring(modelId: string, folder: string, parts: StepParts): Promise<void> {
    const path = `models/${modelId}/${folder}`;
    const manifest = await this.#manifest(path, folder);
    const target = this.#cache.pathOf(modelId, folder);
    mkdirSync(target, { recursive: true, mode: 0o700 });
    const missing: ManifestFile[] = [];
    for (const file of manifest.files.filter(({ name }) => isWanted(name, parts))) {
      const local = join(target, file.name);
      if (this.#cache.has(modelId, folder, [file.name])) continue;
      if (hasFile(local) && (await fileDigest(local)) === file.sha256) this.#cache.add(modelId, folder, file.name);
      else missing.push(file);
    }
    this.#cache.touch(modelId, folder);
    this.#cache.makeRoom(sum(missing), folder);
    for (const file of missing) {
      const came = await this.#download(`${path}/${file.name}`, file.sha256);
      if (!came) throw new DamagedFiles(`${path}/${file.name} is not in the bucket`);
      this.#cache.add(modelId, folder, file.name);
    }
    // a later process goes by it
    const now = new Date();
    utimesSync(target, now, now);
  }

  async #manifest(path: string, folder: string): Promise<Manifest> {
    const known = this.#manifests.get(path);
    if (known) return known;
    const text = await this.#bucket.get(`${path}/${MANIFEST}`);
    if (text === null) throw new DamagedFiles(`${path} is not in the bucket`);
    const manifest = readManifest(folder, text);
    this.#manifests.set(path, manifest);
    return manifest;
  }

  /** `sha256`: what it must have; null = what was kept with the object. Returns false if there is no such object. */
  async #download(path: string, sha256: string | null): Promise<boolean> {
    const target = join(this.#root, path);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    const temporary = temporaryBeside(target);
    try {
      const received = await this.#bucket.download(path, temporary);
      if (received === null) return false;
      const right = received.sha256 === (sha256 ?? received.expected);
      if (!right) throw new DamagedFiles(`${path} was changed in the storage`);
      renameSync(temporary, target);
      return true;
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  async #removeObjects(path: string): Promise<void> {
    for await (const { key } of this.#bucket.list(`${path}/`)) await this.#bucket.remove(key);
  }

  /** Those who want the same wait for the same. One that leaves does not stop it for the others. */
  #once(what: string, { signal }: Access, work: () => Promise<void>): Promise<void> {
    let coming = this.#coming.get(what);
    if (!coming) {
      coming = work().finally(() => this.#coming.delete(what));
      this.#coming.set(what, coming);
    }
    return signal ? orAborted(coming, signal) : coming;
  }

  async #patiently<R>({ signal, patient }: Access, work: () => Promise<R>): Promise<R> {
    const until = performance.now() + (patient ? this.#patienceMs : 0);
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      signal?.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        signal?.throwIfAborted();
        const hopeless = !(error instanceof StorageUnavailable) || !error.passing;
        if (hopeless || performance.now() + wait > until) throw error;
        if (wait === FIRST_WAIT_MS) this.#log.warn("a job waits for the storage", { error });
      }
      await delay(wait, undefined, signal ? { signal } : {}).catch(() => {});
    }
  }
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function isWanted(name: string, parts: StepParts): boolean {
  return parts === "all" || name !== OPTIMIZER_FILE;
}

function namesOf({ files }: Manifest, parts: StepParts): string[] {
  return files.map(({ name }) => name).filter((name) => isWanted(name, parts));
}

function sum(files: readonly ManifestFile[]): number {
  return files.reduce((total, { bytes }) => total + bytes, 0);
}

/** Removes what an earlier process was working on. Everything that counts is in the bucket. */
function clearScratch(root: string): void {
  for (const folder of ["jobs", "records"]) rmSync(join(root, folder), { recursive: true, force: true });
  for (const folder of ["jobs", "models"]) mkdirSync(join(root, folder), { recursive: true, mode: 0o700 });
  for (const model of readdirSync(join(root, "models"))) {
    const folder = join(root, "models", model);
    rmSync(join(folder, "gradients"), { recursive: true, force: true });
    for (const name of readdirSync(folder)) {
      if (isStaging(name) || isTemporaryName(name)) rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
}
