// The records of jobs: what was sent and what became of it, for reading later. Any server on the same storage may read
// them. Records older or larger than the bound of their workspace go, the oldest first; a deleted model takes its records
// with it.
//   sent      what the client sent, from the moment the job is accepted
//   prepared  verdicts and tokens, from the moment the job trains
//   tokens    what the trainer computed for every token, once it is done
import type { RecordFiles, RecordOf, RecordSize } from "../files/record-files.ts";
import type { Access } from "../files/shared-files.ts";
import { TOKEN_ROW_BYTES } from "../gradient/token-numbers.ts";
import { TrainingError } from "../training-error.ts";
import { LineFile, openIfThere } from "./line-file.ts";
import { RecordReader } from "./record-reader.ts";

// Which records of jobs have to go: those that are too old, then the oldest until the rest is small enough.

export interface RecordBound {
  /** Of all records of one workspace; 0 = keep none. */
  bytes: number;
  /** Since the job was sent. */
  ms: number;
}

/** `records`: of one workspace. `now`: milliseconds since 1970. */
function beyondBound(records: readonly RecordSize[], bound: RecordBound, now: number): RecordSize[] {
  const newestFirst = [...records].sort((a, b) => b.at - a.at);
  let total = 0;
  return newestFirst.filter(({ at, bytes }) => {
    total += bytes;
    return total > bound.bytes || at <= now - bound.ms;
  });
}

export class Records {
  readonly #files: RecordFiles;
  readonly #bound: RecordBound;

  constructor(files: RecordFiles, bound: RecordBound) {
    this.#files = files;
    this.#bound = bound;
  }

  /** Whether new jobs are recorded. */
  get keeps(): boolean {
    return this.#bound.bytes > 0 && this.#bound.ms > 0;
  }

  /** Moves a complete file into the record of a job. */
  publish(file: string, name: "sent" | "prepared" | "tokens", job: RecordOf, access: Access = {}): Promise<void> {
    return this.#files.publish(file, name, job, access);
  }

  /** The record of a job. Throws if it is gone or was never kept. Whoever opens it closes it. */
  async open(job: RecordOf, access: Access = {}): Promise<RecordReader> {
    const sent = await LineFile.open(await this.#files.fetch("sent", job, access));
    if (!sent) throw new TrainingError("record_expired", { id: job.id });
    try {
      return new RecordReader(sent, await LineFile.open(await this.#files.fetch("prepared", job, access)));
    } catch (error) {
      await sent.close();
      throw error;
    }
  }

  /** Rows of what the trainer computed (gradient/token-numbers.ts); null if it kept none. */
  async tokenRows(job: RecordOf, from: number, count: number): Promise<Float32Array | null> {
    const file = await openIfThere(await this.#files.fetch("tokens", job, {}));
    if (!file) return null;
    try {
      const bytes = new Uint8Array(count * TOKEN_ROW_BYTES);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, from * TOKEN_ROW_BYTES);
      return bytesRead === bytes.length ? new Float32Array(bytes.buffer) : null;
    } finally {
      await file.close();
    }
  }

  remove(job: RecordOf): Promise<void> {
    return this.#files.remove(job);
  }

  removeModel(modelId: string): Promise<void> {
    return this.#files.removeModel(modelId);
  }

  /**
   * Removes what is beyond the bound, and what belongs to no known job and is older than `strayMs`: its job may be about
   * to be accepted elsewhere. Several servers may do this at once: all would remove the same records. Returns the size of
   * what is left, by job. `known`: the jobs, which were looked up before.
   */
  async tidy(known: ReadonlyMap<string, { owner: string }>, strayMs: number): Promise<Map<string, number>> {
    const now = Date.now();
    const left = new Map<string, number>();
    for (const [owner, records] of byOwner(await this.#files.list(), known)) {
      const going =
        owner === null ? records.filter(({ at }) => at <= now - strayMs) : beyondBound(records, this.#bound, now);
      for (const { id, bytes } of records) left.set(id, bytes);
      for (const record of going) {
        await this.#files.remove(record);
        left.delete(record.id);
      }
    }
    return left;
  }
}

/** null: of no known job. */
function byOwner(
  records: readonly RecordSize[],
  known: ReadonlyMap<string, { owner: string }>,
): Map<string | null, RecordSize[]> {
  const found = new Map<string | null, RecordSize[]>();
  for (const record of records) {
    const owner = known.get(record.id)?.owner ?? null;
    const before = found.get(owner);
    if (before) before.push(record);
    else found.set(owner, [record]);
  }
  return found;
}
