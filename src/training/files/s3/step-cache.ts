// The local copies of steps, bounded in size: those that were used least recently go first, and never one that is in
// use. A file counts as here once it was checked in this process, because a crash may have left half of one.

import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../observe/log.ts";
import type { IsStepUsed } from "../shared-files.ts";
import { folderBytes } from "../workspace.ts";
import { stepOf } from "./step-manifest.ts";

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
