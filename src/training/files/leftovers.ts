// Clears files that the database does not know. Unfinished and deleted files are removed. Anything that may be a trained
// model is only moved to orphans/: if the database is new or was restored from a backup, these files are all that is
// left of it. Files that are younger than `minAgeMs` stay, because another server may be making them.

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isTemporaryName } from "../../system/files.ts";

export interface KnownFiles {
  /** Ids of open jobs. */
  jobs: ReadonlySet<string>;
  /** Those of them that run. */
  running: ReadonlySet<string>;
  /** Ids of operations whose gradients are kept, or in the making. */
  gradients: ReadonlySet<string>;
  /** By id. */
  models: ReadonlyMap<string, KnownModel>;
  /** Folders of removed steps and models, below models/. They go when their time has come, not here. */
  removed: ReadonlySet<string>;
}

export interface KnownModel {
  /** Folders of its steps. */
  folders: ReadonlySet<string>;
  nextStep: number;
  /** The last server stopped while a job of this model was running. */
  interrupted: boolean;
}

export interface Cleared {
  /** Paths below the root. */
  removed: string[];
  movedAside: { from: string; to: string }[];
  /** Steps that were left where they are, though the database should know them. Told once. */
  unknown: string[];
}

const STAGING = ".staging-";
const REMOVED = ".removed-";
const UUID_LENGTH = 36;

/** The folder of a model that has its gradients. */
export const GRADIENTS = "gradients";

/** The folder of a step, and its number. Earlier versions named it by the number alone. */
const STEP = /^step-(\d+)(?:-[0-9a-f]{12}(?:-\d+)?)?$/;

/**
 * A staging folder is beside its final place, so that publishing is a rename. That of a job begins with the job's id;
 * each attempt at the job has its own.
 */
export function stagingName(label: string): string {
  return `${STAGING}${label}`;
}

/** The name of a model's folder while it is being deleted. */
export function removedName(modelId: string): string {
  return `${REMOVED}${modelId}`;
}

export function clearLeftovers(root: string, known: KnownFiles, minAgeMs: number): Cleared {
  const cleared: Cleared = { removed: [], movedAside: [], unknown: [] };
  const isYoung = (...path: string[]) => minAgeMs > 0 && Date.now() - lastChange(join(root, ...path)) < minAgeMs;
  const remove = (...path: string[]) => {
    if (isYoung(...path)) return;
    rmSync(join(root, ...path), { recursive: true, force: true });
    cleared.removed.push(join(...path));
  };
  const moveAside = (...path: string[]) => {
    if (isYoung("models", ...path)) return;
    const to = freeName(join(root, "orphans", ...path));
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    renameSync(join(root, "models", ...path), to);
    cleared.movedAside.push({ from: join("models", ...path), to });
  };
  for (const job of readdirSync(join(root, "jobs"))) if (!known.jobs.has(job)) remove("jobs", job);
  for (const entry of readdirSync(join(root, "models"), { withFileTypes: true })) {
    const folder = join(root, "models", entry.name);
    const model = known.models.get(entry.name);
    if (known.removed.has(entry.name)) continue;
    if (model) {
      for (const name of namesIn(join(folder, GRADIENTS))) {
        if (!known.gradients.has(operationOf(name))) remove("models", entry.name, GRADIENTS, name);
      }
      for (const name of readdirSync(folder)) {
        if (isUnfinished(name) && !isStagingOf(known.running, name)) remove("models", entry.name, name);
        const step = STEP.exec(name);
        if (!step || model.folders.has(name) || known.removed.has(join(entry.name, name))) continue;
        if (isRest(Number(step[1]), model)) remove("models", entry.name, name);
        else moveAside(entry.name, name);
      }
    } else if (entry.name.startsWith(REMOVED) || (entry.isDirectory() && readdirSync(folder).every(isUnfinished))) {
      remove("models", entry.name);
    } else moveAside(entry.name);
  }
  return cleared;
}

/** The operation that left gradients in a file of this name. */
export function operationOf(name: string): string {
  return name.slice(0, UUID_LENGTH);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** A number is used once, so a lower one was deleted. An interrupted job makes the next one again. */
export function isRest(step: number, { nextStep, interrupted }: KnownModel): boolean {
  return step < nextStep || (step === nextStep && interrupted);
}

/** Whether a step is made in a folder of this name. */
export function isStaging(name: string): boolean {
  return name.startsWith(STAGING);
}

/** A step that was being made. Adapters are also written under a temporary name first. */
function isUnfinished(name: string): boolean {
  return isStaging(name) || isTemporaryName(name);
}

/** Adapters get the temporary name of their folder, which has a dot in front. */
function isStagingOf(jobs: ReadonlySet<string>, name: string): boolean {
  return [...jobs].some((id) => name.includes(stagingName(id)));
}

/** When a file or folder, or an entry of it, was changed last. Milliseconds since 1970. */
export function lastChange(path: string): number {
  const changed = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return changed(path);
  return Math.max(changed(path), ...readdirSync(path).map((name) => changed(join(path, name))));
}

function freeName(path: string): string {
  let name = path;
  for (let n = 2; existsSync(name); n++) name = `${path}-${n}`;
  return name;
}
