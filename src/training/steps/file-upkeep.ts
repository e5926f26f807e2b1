// Deletes what is no longer needed. The files of removed steps and models stay for a grace time: requests that were
// bound to a step before it was removed finish on it, here and on other servers, and an engine may load it once more.
// Any server may do this at any time, also several at once: nothing here depends on who removed the step.

import { BackgroundWork } from "../../pacing/work.ts";
import type { TrainingContext } from "../context.ts";
import { clearFiles } from "../files/clear-files.ts";
import type { Policies } from "../policies.ts";

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

  /** Frees the adapters of removed steps, and deletes the files that nobody uses and whose grace is over. */
  async sweep(): Promise<void> {
    const { removedStepTable, workspace, bases, settings, log } = this.#context;
    for (const { modelId, step, folder, removedAt } of await removedStepTable.all()) {
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
