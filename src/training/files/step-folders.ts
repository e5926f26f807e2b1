// The files of training: names and places. What other servers need of them goes through SharedFiles, and only that and
// this file move or delete them.
//   models/<model>/<step>/     a published step: PEFT adapter and optimizer state; never changes. Its row has the name
//                              of the folder
//   models/<model>/curves/     metrics.jsonl and TensorBoard files
//   models/<model>/gradients/  of a run: the gradients that wait for its next optimizer step, a file per operation
//   jobs/<job>/                data of an open job; removed when the job is over. Each attempt at it has a folder inside
//   records/<model>/<job>/     what a job was given, for reading later (record-files.ts moves and deletes these)
//   orphans/                   files that a start found and the database did not know
//   reserve                    space kept free for when the disk is full
// All names are our own ids and numbers.
import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDiskFull, OperatorError } from "../../errors/faults.ts";
import type { StepFiles } from "../../store/tables/models.ts";
import { makeFolderDurably, syncFolder } from "../../system/files.ts";
import { type Cleared, GRADIENTS, type KnownFiles, stagingName } from "./leftovers.ts";
import { RecordFiles } from "./record-files.ts";
import type { Access, IsStepUsed, SharedFiles, StepParts } from "./shared-files.ts";
import { SharedFolder } from "./shared-folder.ts";

// The digest of a step: SHA-256 over the names, sizes and contents of its files, in the order of their names. The same
// files have the same digest on every machine, whatever their folder is called.

/** In hex. */
export async function stepDigest(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder).sort()) {
    const file = join(folder, name);
    hash.update(`${name}\0${statSync(file).size}\0`);
    for await (const part of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(part as Buffer);
  }
  return hash.digest("hex");
}

const RESERVE_BYTES = 1 << 20;

/** An attempt that was taken over may still write while the next one reads its own files. */
const ATTEMPT = "attempt-";

/** Paths. */
export interface AttemptFiles {
  folder: string;
  /** For the trainer. */
  batch: string;
  /** What a pass reads from the model: float32 values. */
  logprobs: string;
  /** What the attempt made of the data, before it becomes part of the job's record. */
  prepared: string;
  /** What it computed for every token, likewise. */
  tokens: string;
}

export class StepFolders {
  readonly records: RecordFiles;
  readonly #root: string;
  readonly #shared: SharedFiles;

  /** By default only this server uses the folder. */
  constructor(root: string, shared: SharedFiles = new SharedFolder(root, 0)) {
    this.#root = root;
    this.#shared = shared;
    this.records = new RecordFiles(root, shared);
    try {
      for (const folder of [join(root, "models"), join(root, "jobs")]) makeFolderDurably(folder, 0o700);
      // a start that was cut off may have made them
      syncFolder(root);
    } catch (error) {
      throw new OperatorError(`cannot keep training files: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Reserves space, so that the end of a job can be recorded even on a full disk. Returns false if there is none. */
  keepReserve(): boolean {
    const file = join(this.#root, "reserve");
    try {
      if (statSync(file, { throwIfNoEntry: false })?.size === RESERVE_BYTES) return true;
    } catch {
      // it cannot be looked at, so it is made again
    }
    try {
      writeFileSync(file, new Uint8Array(RESERVE_BYTES));
      return true;
    } catch {
      rmSync(file, { force: true });
      return false;
    }
  }

  releaseReserve(): void {
    rmSync(join(this.#root, "reserve"), { force: true });
  }

  /** Runs work that frees space in the end. If the disk is full, it may use the reserve. */
  async makingRoom<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.releaseReserve();
      try {
        return await work();
      } finally {
        this.keepReserve();
      }
    }
  }

  /** Removes the path of these files from a text, so that it can go to clients. */
  withoutRoot(text: string): string {
    return text.replaceAll(join(this.#root, "/"), "");
  }

  modelFolder(modelId: string): string {
    return join(this.#root, "models", modelId);
  }

  /** `folder`: from the row of the step. */
  stepFolder(modelId: string, folder: string): string {
    return join(this.modelFolder(modelId), folder);
  }

  curvesFolder(modelId: string): string {
    return join(this.modelFolder(modelId), "curves");
  }

  gradients(modelId: string, operationId: string): string {
    return join(this.#root, gradientsPath(modelId, operationId));
  }

  createGradientsFolder(modelId: string): void {
    mkdirSync(join(this.modelFolder(modelId), GRADIENTS), { recursive: true, mode: 0o700 });
  }

  shareGradients(modelId: string, operationId: string, access: Access): Promise<void> {
    return this.#shared.share(gradientsPath(modelId, operationId), access);
  }

  /** Returns the path of the file, which can be read then. */
  async fetchGradients(modelId: string, operationId: string, access: Access): Promise<string> {
    await this.#shared.fetch(gradientsPath(modelId, operationId), access);
    return this.gradients(modelId, operationId);
  }

  removeGradients(modelId: string, operationId: string): Promise<void> {
    return this.#shared.removeFile(gradientsPath(modelId, operationId));
  }

  jobFolder(jobId: string): string {
    return join(this.#root, "jobs", jobId);
  }

  /** The submitted data: one example, trajectory or group as JSON per line. Version 0.1.0 kept another form in input.jsonl. */
  jobInput(jobId: string): string {
    return join(this.#root, inputPath(jobId));
  }

  /** A job is about to be accepted: its data is on disk, under its name. */
  async shareInput(jobId: string, access: Access): Promise<void> {
    syncFolder(this.jobFolder(jobId));
    await this.#shared.share(inputPath(jobId), access);
  }

  /** Returns the path of the file, which can be read then. */
  async fetchInput(jobId: string, access: Access): Promise<string> {
    this.createJobFolder(jobId);
    await this.#shared.fetch(inputPath(jobId), access);
    return this.jobInput(jobId);
  }

  /** What the client sent, before it becomes part of the job's record. */
  jobSent(jobId: string): string {
    return join(this.jobFolder(jobId), "sent");
  }

  createJobFolder(jobId: string): void {
    makeFolderDurably(this.jobFolder(jobId), 0o700);
  }

  /**
   * The working files of an attempt, in a new folder. What earlier attempts left goes: none of them can succeed now. A later
   * one may be at work: then this one has lost its lease, and hears of it soon.
   */
  beginAttempt(jobId: string, epoch: number): AttemptFiles {
    this.createJobFolder(jobId);
    for (const name of readdirSync(this.jobFolder(jobId))) {
      const isEarlier = name.startsWith(ATTEMPT) && Number(name.slice(ATTEMPT.length)) <= epoch;
      if (isEarlier) rmSync(join(this.jobFolder(jobId), name), { recursive: true, force: true });
    }
    const folder = join(this.jobFolder(jobId), `${ATTEMPT}${epoch}`);
    mkdirSync(folder, { mode: 0o700 });
    const [batch, logprobs, prepared, tokens] = ["batch.jsonl", "logprobs", "prepared", "tokens"].map((name) =>
      join(folder, name),
    ) as [string, string, string, string];
    return { folder, batch, logprobs, prepared, tokens };
  }

  endAttempt({ folder }: AttemptFiles): void {
    rmSync(folder, { recursive: true, force: true });
  }

  /** A folder to make the next step in. It does not exist yet and is beside the final place, for a rename. */
  newStaging(modelId: string, label: string): string {
    const folder = join(this.modelFolder(modelId), stagingName(label));
    mkdirSync(this.modelFolder(modelId), { recursive: true, mode: 0o700 });
    rmSync(folder, { recursive: true, force: true });
    return folder;
  }

  removeStaging(folder: string): void {
    rmSync(folder, { recursive: true, force: true });
  }

  /** Moves a complete staging folder into place. If this fails, the folder is still there. */
  async publish(staging: string, modelId: string, step: number, access: Access = {}): Promise<StepFiles> {
    const digest = await stepDigest(staging);
    const bytes = folderBytes(staging);
    const folder = await this.#shared.publishStep(staging, modelId, step, digest, access);
    return { folder, bytes, digest };
  }

  /** Makes the files of a step readable in its folder (SharedFiles.fetchStep). */
  fetchStep(modelId: string, folder: string, parts: StepParts, access: Access): Promise<void> {
    return this.#shared.fetchStep(modelId, folder, parts, access);
  }

  /** What is used stays readable here. */
  protect(isUsed: IsStepUsed): void {
    this.#shared.protect(isUsed);
  }

  removeStep(modelId: string, folder: string): Promise<void> {
    return this.#shared.removeFolder(`models/${modelId}/${folder}`);
  }

  removeModel(modelId: string): Promise<void> {
    return this.#shared.removeFolder(`models/${modelId}`);
  }

  /** `folder`: as store/tables/storage.ts has it. */
  removedFolder(folder: string): string {
    return join(this.#root, "models", folder);
  }

  removeFolder(folder: string): Promise<void> {
    return this.#shared.removeFolder(`models/${folder}`);
  }

  /** Removes the folder of a model if nothing is in it. */
  removeEmptyModel(modelId: string): void {
    const folder = this.modelFolder(modelId);
    if (existsSync(folder) && readdirSync(folder).length === 0) rmSync(folder, { recursive: true, force: true });
  }

  removeJob(jobId: string): Promise<void> {
    return this.#shared.removeFolder(`jobs/${jobId}`);
  }

  clearLeftovers(known: KnownFiles, minAgeMs: number): Promise<Cleared> {
    return this.#shared.clear(known, minAgeMs);
  }
}

function gradientsPath(modelId: string, operationId: string): string {
  return `models/${modelId}/${GRADIENTS}/${operationId}.safetensors`;
}

function inputPath(jobId: string): string {
  return `jobs/${jobId}/submission.jsonl`;
}

/** Total size of the files in a folder, in bytes. */
export function folderBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}
