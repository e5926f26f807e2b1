// The files of job records: records/<model>/<job>/<name>. A file is made elsewhere and renamed into place, so that none is
// seen half written.

import { mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Access, SharedFiles } from "./shared-files.ts";

export interface RecordOf {
  /** Of the job. */
  id: string;
  modelId: string;
}

export interface RecordSize extends RecordOf {
  bytes: number;
  /** When its first file was written, in milliseconds since 1970. */
  at: number;
}

const FOLDER = "records";

export class RecordFiles {
  readonly #root: string;
  readonly #shared: SharedFiles;

  constructor(root: string, shared: SharedFiles) {
    this.#root = root;
    this.#shared = shared;
  }

  /** Moves a complete file into a record, replacing that of an earlier attempt. */
  async publish(file: string, name: string, record: RecordOf, access: Access): Promise<void> {
    const path = pathOf(record, name);
    mkdirSync(join(this.#root, dirname(path)), { recursive: true, mode: 0o700 });
    renameSync(file, join(this.#root, path));
    await this.#shared.share(path, access);
  }

  /** Returns the path of a file, which can be read then if it exists. */
  async fetch(name: string, record: RecordOf, access: Access): Promise<string> {
    const path = pathOf(record, name);
    await this.#shared.fetch(path, access);
    return join(this.#root, path);
  }

  async remove({ modelId, id }: RecordOf): Promise<void> {
    await this.#shared.removeFolder(`${FOLDER}/${modelId}/${id}`);
  }

  async removeModel(modelId: string): Promise<void> {
    await this.#shared.removeFolder(`${FOLDER}/${modelId}`);
  }

  async list(): Promise<RecordSize[]> {
    const records = new Map<string, RecordSize>();
    for (const { path, bytes, writtenAt } of await this.#shared.list(FOLDER)) {
      const [, modelId, id] = path.split("/") as [string, string, string];
      const known = records.get(id);
      const at = Math.min(writtenAt, known?.at ?? writtenAt);
      records.set(id, { modelId, id, at, bytes: bytes + (known?.bytes ?? 0) });
    }
    return [...records.values()];
  }
}

function pathOf({ modelId, id }: RecordOf, name: string): string {
  return `${FOLDER}/${modelId}/${id}/${name}`;
}
