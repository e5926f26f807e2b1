// Clears objects away that the database does not know: data of jobs that are over, steps whose publication was cut off, and
// parts of uploads. Only old ones go, because another server may be making them; several servers may do this at once.
// Complete steps that the database should know but does not are never deleted: if it was restored from a backup, they are
// all that is left of them.

import { join } from "node:path";
import { type Cleared, GRADIENTS, isRest, type KnownFiles, operationOf } from "../leftovers.ts";
import type { S3Bucket } from "./bucket.ts";
import { MANIFEST, stepOf } from "./step-cache.ts";

/** The objects of a job, or of a folder of a model. */
interface Group {
  keys: string[];
  /** When the last of them was written. */
  modified: number;
}

export class BucketLeftovers {
  readonly #bucket: S3Bucket;
  /** Steps that were reported as unknown. */
  readonly #told = new Set<string>();

  constructor(bucket: S3Bucket) {
    this.#bucket = bucket;
  }

  async clear(known: KnownFiles, minAgeMs: number): Promise<Cleared> {
    const cleared: Cleared = { removed: [], movedAside: [], unknown: [] };
    const before = Date.now() - minAgeMs;
    const remove = async (name: string, { keys, modified }: Group) => {
      if (minAgeMs > 0 && modified > before) return;
      for (const key of keys) await this.#bucket.remove(key);
      cleared.removed.push(name);
    };
    for await (const [name, group] of this.#groups("jobs/", 2)) {
      if (!known.jobs.has(name.slice("jobs/".length))) await remove(name, group);
    }
    for await (const [name, group] of this.#groups("models/", 3)) {
      const [, modelId, folder] = name.split("/");
      const model = known.models.get(modelId!);
      const step = stepOf(folder!);
      if (known.removed.has(modelId!) || known.removed.has(join(modelId!, folder!))) continue;
      if (model && folder === GRADIENTS) await this.#clearGradients(name, group, known, remove);
      if (model && (step === null || model.folders.has(folder!))) continue;
      const complete = step !== null && group.keys.some((key) => key.endsWith(`/${MANIFEST}`));
      if (!complete || (model && isRest(step, model))) await remove(name, group);
      else if (group.modified <= before && !this.#told.has(name)) {
        this.#told.add(name);
        cleared.unknown.push(name);
      }
    }
    for await (const { key, uploadId, started } of this.#bucket.uploads("")) {
      if (started > before) continue;
      await this.#bucket.abortUpload(key, uploadId);
      cleared.removed.push(key);
    }
    return cleared;
  }

  async #clearGradients(
    folder: string,
    { keys, modified }: Group,
    { gradients }: KnownFiles,
    remove: (name: string, group: Group) => Promise<void>,
  ): Promise<void> {
    for (const key of keys) {
      const isKept = gradients.has(operationOf(key.slice(folder.length + 1)));
      if (!isKept) await remove(key, { keys: [key], modified });
    }
  }

  /** Objects whose keys have the same first `depth` names. A list is in the order of keys, so they follow one another. */
  async *#groups(prefix: string, depth: number): AsyncGenerator<[name: string, group: Group]> {
    let name = "";
    let group: Group = { keys: [], modified: 0 };
    for await (const { key, modified } of this.#bucket.list(prefix)) {
      const own = key.split("/").slice(0, depth).join("/");
      if (own !== name && group.keys.length > 0) yield [name, group];
      if (own !== name) group = { keys: [], modified: 0 };
      name = own;
      group.keys.push(key);
      group.modified = Math.max(group.modified, modified);
    }
    if (group.keys.length > 0) yield [name, group];
  }
}
