// Which steps of a model stay, which files are deleted and when, and the room that the next step needs.

import { join } from "node:path";
import { BackgroundWork } from "../../pacing/work.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { TrainingContext } from "../context.ts";
import type { CurveWriter } from "../files/curves.ts";
import type { KnownFiles, KnownModel } from "../files/leftovers.ts";
import type { Policies } from "../policies.ts";

// Compares the files with the database and clears away what belongs to nothing: at the start of a server that is alone,
// and now and then where several servers share the files.

export interface ClearOptions {
  /** Models whose job was running when the last server stopped. */
  interrupted: ReadonlySet<string>;
  /** Younger files stay: their row may be about to come. 0 = nobody else is at work. */
  minAgeMs: number;
}

export async function clearFiles(
  context: Pick<TrainingContext, "transaction" | "workspace" | "log">,
  options: ClearOptions,
): Promise<void> {
  const { workspace, log } = context;
  const known = await knownFiles(context, options.interrupted);
  const { removed, movedAside, unknown } = await workspace.clearLeftovers(known, options.minAgeMs);
  if (removed.length > 0) log.info("removed files that belong to nothing", { count: removed.length });
  for (const { from, to } of movedAside) {
    log.warn("moved training files aside that the database does not know", { from, folder: to });
  }
  for (const path of unknown) log.warn("the storage has a step that the database does not know", { path });
}

/** In one transaction: a job or a step that changes meanwhile must not be missed. */
function knownFiles(
  { transaction }: Pick<TrainingContext, "transaction">,
  interrupted: ReadonlySet<string>,
): Promise<KnownFiles> {
  return transaction(async ({ modelTable, jobTable, runTable, removedStepTable }) => {
    const models = new Map<string, KnownModel & { folders: Set<string> }>();
    for (const { id, nextStep } of await modelTable.all()) {
      models.set(id, { folders: new Set(), nextStep, interrupted: interrupted.has(id) });
    }
    for (const { modelId, folder } of await modelTable.folders()) models.get(modelId)?.folders.add(folder);
    const running = (await jobTable.withStatus("RUNNING")).map(({ id }) => id);
    const waiting = (await jobTable.withStatus("PENDING")).map(({ id }) => id);
    const removed = (await removedStepTable.all()).map(({ folder }) => folder);
    const gradients = await runTable.gradients();
    const jobs = new Set([...running, ...waiting]);
    return { models, running: new Set(running), jobs, gradients, removed: new Set(removed) };
  });
}

// Deletes what is no longer needed. The files of removed steps and models stay for a grace time: requests that were
// bound to a step before it was removed finish on it, here and on other servers, and an engine may load it once more.
// Any server may do this at any time, also several at once: nothing here depends on who removed the step.

const SWEEP_MS = 60_000;

/** Files without a row may be those of another server that is about to commit one. This old, they are not. */
const LEFTOVER_MS = 3_600_000;
const CLEAR_MS = 600_000;
const TIDY_MS = 120_000;

export class FileUpkeep {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #work: BackgroundWork;

  constructor(context: TrainingContext, policies: Policies) {
    this.#context = context;
    this.#policies = policies;
    this.#work = new BackgroundWork((what, error) => context.log.error(what, { error }));
  }

  start(): void {
    this.#work.every(SWEEP_MS, "deleting files of removed steps", () => this.sweep());
    this.#work.every(SWEEP_MS, "releasing what nobody writes any more", () => this.#context.account.tidy());
    this.#work.every(TIDY_MS, "removing old records of jobs", () => this.tidyRecords());
    // otherwise the start has cleared them, and nobody else leaves any
    if (!this.#context.server.alone) this.#work.every(CLEAR_MS, "clearing away leftover files", () => this.clear());
  }

  async close(): Promise<void> {
    await this.#work.close();
  }

  /**
   * Frees the adapters of removed steps, and deletes the files that nobody uses and whose grace is over. What was removed stays
   * removed, so this never fails: what it leaves, the next one finds.
   */
  async sweep(): Promise<void> {
    const { removedStepTable, workspace, bases, settings, log } = this.#context;
    const removed = await removedStepTable.all().catch((error: unknown) => {
      log.error("removed steps could not be looked up", { error });
      return [];
    });
    for (const { modelId, step, folder, removedAt } of removed) {
      try {
        const path = workspace.removedFolder(folder);
        if (step !== null) for (const name of bases.names()) await bases.get(name)!.slots.forget(path);
        if (removedAt > Date.now() - settings.stepGraceMs || this.#policies.inUse(modelId, step)) continue;
        await workspace.removeFolder(folder);
        await workspace.makingRoom(() => removedStepTable.delete(folder));
      } catch (error) {
        log.error("files of a removed step could not be deleted", { folder, error });
      }
    }
  }

  /** Removes records of jobs that are beyond the bound or belong to no job, and counts the others as they are. */
  async tidyRecords(): Promise<void> {
    const { jobTable, records } = this.#context;
    const known = await jobTable.recorded();
    const left = await records.tidy(known, LEFTOVER_MS);
    for (const [id, { bytes }] of known) {
      const size = left.get(id) ?? 0;
      if (size !== bytes) await jobTable.correctRecordBytes(id, bytes, size);
    }
  }

  /** Clears away what servers left that are gone. */
  async clear(): Promise<void> {
    const minAgeMs = Math.max(LEFTOVER_MS, this.#context.settings.stepGraceMs);
    await clearFiles(this.#context, { interrupted: new Set(), minAgeMs });
  }
}

// Removes steps: those that clients delete, and the oldest ones when a model has too many. The row goes first, so that
// nobody can ask for the step any more. Its adapter and its files follow (FileUpkeep).
export class StepRetention {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #files: FileUpkeep;
  readonly #curves: CurveWriter;

  constructor(context: TrainingContext, policies: Policies, files: FileUpkeep, curves: CurveWriter) {
    this.#context = context;
    this.#policies = policies;
    this.#files = files;
    this.#curves = curves;
  }

  /** Returns false if somebody uses the step, which then stays. */
  async remove(modelId: string, step: number): Promise<boolean> {
    const { transaction, workspace } = this.#context;
    const deleteRow = () =>
      transaction(async ({ modelTable, removedStepTable }) => {
        if (await modelTable.isTrainedFrom(modelId, step)) return false;
        const owner = (await modelTable.get(modelId))?.owner;
        const files = await modelTable.deleteStep(modelId, step);
        if (owner === undefined || files === null) return true;
        const [folder, removedAt] = [join(modelId, files.folder), Date.now()];
        await removedStepTable.insert({ modelId, step, folder, removedAt, owner, bytes: files.bytes });
        return true;
      });
    const removed = await workspace.makingRoom(() => this.#policies.unlessUsed(modelId, step, deleteRow));
    if (removed) await this.#files.sweep();
    return removed;
  }

  /**
   * Follows every new step but the first: completes the curves, then removes the oldest steps beyond the limit. The step is there,
   * so nothing that fails here is anybody's error.
   */
  async afterStep(modelId: string): Promise<void> {
    const { modelTable, workspace, settings, log } = this.#context;
    try {
      workspace.keepReserve();
      // before the steps go: the curves are made from them
      await this.#curves.write(modelId);
      if ((await modelTable.countSteps(modelId)) <= settings.maxStepsPerModel) return;
      const steps = await modelTable.steps(modelId);
      // of this list, because another call may have removed some since they were counted
      let excess = steps.length - settings.maxStepsPerModel;
      for (const { step } of steps.slice(0, -1)) {
        if (excess <= 0) return;
        if (await this.remove(modelId, step)) excess--;
      }
    } catch (error) {
      log.error("old steps of a model could not be removed", { model: modelId, error });
    }
  }
}

// What the next step of a model will take on disk, at most: set aside before anybody makes it.

/** In bytes. The newest step counts too, because a trainer may write more than the values that we know of. */
export async function expectedStepBytes(
  { modelTable, bases }: Pick<TrainingContext, "modelTable" | "bases">,
  model: Pick<ModelRecord, "id" | "baseModel" | "loraRank">,
): Promise<number> {
  const base = bases.get(model.baseModel);
  const newest = (await modelTable.newestStep(model.id))?.bytes ?? 0;
  return Math.max(newest, base ? bases.sizes(base, model.loraRank).step : 0);
}
