// The files of training. Only this file and leftovers.ts move or delete them.
//   models/<model>/step-<n>-<digest>/  a published step: PEFT adapter and optimizer state; never changes. Its row has
//                              the name of the folder
//   models/<model>/curves/     metrics.jsonl and TensorBoard files
//   models/<model>/gradients/  of a run: the gradients that wait for its next optimizer step, a file per operation
//   jobs/<job>/                data of an open job; removed when the job is over
//   orphans/                   files that a start found and the database did not know
//   reserve                    space kept free for when the disk is full
// A step appears by renaming a folder whose files are already on disk. All names are our own ids and numbers.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { OperatorError } from "../../errors/operator-error.ts";
import type { StepFiles } from "../../store/model-table.ts";
import { syncFolder } from "../../system/durable-file.ts";
import { isDiskFull } from "./disk-full.ts";
import { type Cleared, clearLeftovers, type KnownFiles, removedName, stagingName } from "./leftovers.ts";
import { stepDigest } from "./step-digest.ts";

const RESERVE_BYTES = 1 << 20;

export class Workspace {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
    try {
      for (const folder of [join(root, "models"), join(root, "jobs")]) {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
      }
    } catch (error) {
      throw new OperatorError(`cannot keep training files: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Reserves space, so that the end of a job can be recorded even on a full disk. Returns false if there is none. */
  keepReserve(): boolean {
    const file = join(this.#root, "reserve");
    if (statSync(file, { throwIfNoEntry: false })?.size === RESERVE_BYTES) return true;
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
    return join(this.#gradientsFolder(modelId), `${operationId}.safetensors`);
  }

  createGradientsFolder(modelId: string): void {
    mkdirSync(this.#gradientsFolder(modelId), { recursive: true, mode: 0o700 });
  }

  removeGradients(modelId: string, operationId: string): void {
    rmSync(this.gradients(modelId, operationId), { force: true });
  }

  jobFolder(jobId: string): string {
    return join(this.#root, "jobs", jobId);
  }

  /** The submitted data: one example, trajectory or group as JSON per line. Version 0.1.0 kept another form in input.jsonl. */
  jobInput(jobId: string): string {
    return join(this.jobFolder(jobId), "submission.jsonl");
  }

  /** `epoch`: of the attempt. One that was taken over may still write while the next one reads its own. */
  jobBatch(jobId: string, epoch: number): string {
    return join(this.jobFolder(jobId), `batch-${epoch}.jsonl`);
  }

  /** What a pass reads from the model: float32 values. */
  jobLogprobs(jobId: string, epoch: number): string {
    return join(this.jobFolder(jobId), `logprobs-${epoch}`);
  }

  createJobFolder(jobId: string): void {
    mkdirSync(this.jobFolder(jobId), { recursive: true, mode: 0o700 });
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

  /**
   * Moves a complete staging folder into place, durably. The place is new: whoever else publishes this step, now or
   * in an attempt that was interrupted, has another folder. So its files can go if its row cannot be committed.
   */
  async publish(staging: string, modelId: string, step: number): Promise<StepFiles> {
    syncTree(staging);
    const digest = await stepDigest(staging);
    const bytes = folderBytes(staging);
    const folder = this.#moveTo(modelId, stepFolderName(step, digest), staging);
    // whoever clears away files without a row goes by their age
    const now = new Date();
    utimesSync(this.stepFolder(modelId, folder), now, now);
    syncFolder(this.modelFolder(modelId));
    syncFolder(join(this.#root, "models"));
    return { folder, bytes, digest };
  }

  removeStep(modelId: string, folder: string): void {
    rmSync(this.stepFolder(modelId, folder), { recursive: true, force: true });
  }

  /** Renames the folder first, so that a start recognises one that a crash left half deleted. */
  removeModel(modelId: string): void {
    const going = join(this.#root, "models", removedName(modelId));
    if (existsSync(this.modelFolder(modelId))) renameSync(this.modelFolder(modelId), going);
    rmSync(going, { recursive: true, force: true });
  }

  /** `folder`: as store/removed-step-table.ts has it. */
  removedFolder(folder: string): string {
    return join(this.#root, "models", folder);
  }

  async removeFolder(folder: string): Promise<void> {
    await rm(this.removedFolder(folder), { recursive: true, force: true });
  }

  /** Removes the folder of a model if nothing is in it. */
  removeEmptyModel(modelId: string): void {
    const folder = this.modelFolder(modelId);
    if (existsSync(folder) && readdirSync(folder).length === 0) rmSync(folder, { recursive: true, force: true });
  }

  removeJob(jobId: string): void {
    rmSync(this.jobFolder(jobId), { recursive: true, force: true });
  }

  clearLeftovers(known: KnownFiles, minAgeMs: number): Cleared {
    return clearLeftovers(this.#root, known, minAgeMs);
  }

  /** Returns the name that it got: `name`, with a number if that is taken. A folder is never replaced. */
  #moveTo(modelId: string, name: string, staging: string): string {
    for (let n = 1; ; n++) {
      const folder = n === 1 ? name : `${name}-${n}`;
      try {
        // refused while the target has files
        if (!existsSync(this.stepFolder(modelId, folder))) {
          renameSync(staging, this.stepFolder(modelId, folder));
          return folder;
        }
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
    }
  }

  #gradientsFolder(modelId: string): string {
    return join(this.modelFolder(modelId), "gradients");
  }
}

/** What a published step is called. Its row has the name, and nobody takes it apart but leftovers.ts. */
function stepFolderName(step: number, digest: string): string {
  return `step-${step}-${digest.slice(0, 12)}`;
}

function isTaken(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOTEMPTY" || code === "EEXIST";
}

/** Total size of the files in a folder, in bytes. */
export function folderBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

export function hasFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
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
