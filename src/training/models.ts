// Trainable models as clients see them: register, fork, list, roll back, log and delete.

import { randomUUID } from "node:crypto";
import type { ModelFilter, ModelRecord, StepRecord } from "../store/model-table.ts";
import type { TrainingContext } from "./context.ts";
import type { GroupLog } from "./data/group-metrics.ts";
import type { JobRunner } from "./jobs/job-runner.ts";
import type { Policies } from "./policies.ts";
import type { StepPublisher, StepSource } from "./steps/publish-step.ts";
import type { StepRetention } from "./steps/step-retention.ts";
import { TrainingError } from "./training-error.ts";

/** The metrics of a step are read whenever the step is. */
const MAX_STEP_METRICS = 10_000;

export interface NewModel extends Pick<ModelRecord, "owner" | "entity" | "project" | "name"> {
  /** null = the base model of the fork's source. */
  baseModel: string | null;
  returnExisting: boolean;
  /** The step to fork; step null = the newest. */
  from: { modelId: string; step: number | null } | null;
}

export class Models {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #publisher: StepPublisher;
  readonly #retention: StepRetention;
  readonly #runner: JobRunner;

  constructor(
    context: TrainingContext,
    policies: Policies,
    publisher: StepPublisher,
    retention: StepRetention,
    runner: JobRunner,
  ) {
    this.#context = context;
    this.#policies = policies;
    this.#publisher = publisher;
    this.#retention = retention;
    this.#runner = runner;
  }

  create(request: NewModel): ModelRecord {
    const { modelTable, bases, settings } = this.#context;
    const { owner, entity, project, name } = request;
    const existing = modelTable.named(owner, entity, project, name);
    if (existing && request.returnExisting) return existing;
    if (existing) throw new TrainingError("model_exists", { model: `${entity}/${project}/${name}` });
    assertFree(name, this.#context);
    const source = request.from && this.#sourceOf(request.from, owner);
    const baseModel = request.baseModel ?? source?.model.baseModel;
    const base = baseModel === undefined ? null : bases.get(baseModel);
    if (!base) throw new TrainingError("unknown_base_model", { baseModel, known: bases.names() });
    bases.assertUnchanged(base);
    // compares models, not names: the base model may have been renamed
    if (source && bases.get(source.model.baseModel) !== base) {
      throw new TrainingError("fork_changes_base_model", { baseModel: source.model.baseModel });
    }
    const lora = source ? { rank: source.model.loraRank, alpha: source.model.loraAlpha } : settings.lora;
    const names = { id: randomUUID(), owner, entity, project, name, baseModel: base.name };
    const model = { ...names, nextStep: source?.step ?? 0, loraRank: lora.rank, loraAlpha: lora.alpha };
    return this.#publisher.publishFirst(model, base, source);
  }

  owned(id: string, owner: string): ModelRecord {
    const model = this.#context.modelTable.owned(id, owner);
    if (!model) throw new TrainingError("unknown_model", { id });
    return model;
  }

  list(owner: string, filter: ModelFilter, after: string | null, limit: number): ModelRecord[] {
    return this.#context.modelTable.list(owner, filter, after, limit);
  }

  /** Deletes a model with its steps, jobs and their events. Whoever follows an open job first hears that it ended. */
  async delete(id: string, owner: string): Promise<{ deletedCheckpoints: number }> {
    const { store, modelTable, jobTable, bases, workspace } = this.#context;
    const model = this.owned(id, owner);
    // nothing is awaited between the last look and the transaction: a job whose row is gone could never end
    while (jobTable.openOf(id).length > 0) await this.#runner.cancelJobsOf(id, "its model was deleted");
    const steps = modelTable.steps(id);
    workspace.makingRoom(() =>
      store.transaction(() => {
        jobTable.deleteOf(id);
        modelTable.delete(id);
      }),
    );
    for (const { step } of steps) await this.#policies.unload(id, step, bases.get(model.baseModel));
    workspace.removeModel(id);
    return { deletedCheckpoints: steps.length };
  }

  step(id: string, owner: string, step: number | "latest"): StepRecord {
    const { modelTable } = this.#context;
    const model = this.owned(id, owner);
    const found = step === "latest" ? modelTable.newestStep(model.id) : modelTable.step(model.id, step);
    if (!found) throw new TrainingError("unknown_step", { step });
    return found;
  }

  /** The folder of a step. Its files stay until `release` is called. */
  openStep(id: string, owner: string, step: number | "latest"): { step: StepRecord; folder: string; release(): void } {
    const found = this.step(id, owner, step);
    const folder = this.#context.workspace.stepFolder(found.modelId, found.step);
    return { step: found, folder, release: this.#policies.lease(found.modelId, found.step) };
  }

  steps(id: string, owner: string): StepRecord[] {
    return this.#context.modelTable.steps(this.owned(id, owner).id);
  }

  /** Keeps the newest step and steps in use, and says which. */
  async deleteSteps(id: string, owner: string, steps: readonly number[]) {
    const { modelTable } = this.#context;
    const newest = modelTable.newestStep(this.owned(id, owner).id)?.step;
    const wanted = [...new Set(steps)];
    const existing = wanted.filter((step) => modelTable.step(id, step) !== null);
    const kept: number[] = [];
    for (const step of existing) {
      // checked last: a request may have taken it while another step was removed
      if (step === newest || this.#policies.inUse(id, step)) kept.push(step);
      else await this.#retention.remove(id, step);
    }
    return {
      deletedCount: existing.length - kept.length,
      notFoundSteps: wanted.filter((step) => !existing.includes(step)),
      keptSteps: kept,
    };
  }

  /** Makes a new newest step with the weights (and optimizer state) of an old one. */
  async rollback(id: string, owner: string, step: number): Promise<StepRecord> {
    const model = this.owned(id, owner);
    this.step(id, owner, step);
    if (this.#context.jobTable.openOf(id).length > 0) throw new TrainingError("model_busy", {});
    const made = await this.#publisher.publishCopy(model, step);
    await this.#retention.afterStep(id);
    return made;
  }

  /** Keeps the metrics of evaluated groups with the newest step, where clients that prune look for them. */
  log(id: string, owner: string, split: string, groups: GroupLog): Record<string, number> {
    const { modelTable } = this.#context;
    const newest = modelTable.newestStep(this.owned(id, owner).id);
    const metrics = groups.metrics(split);
    if (!newest) return metrics;
    const names = new Set([...Object.keys(newest.metrics), ...Object.keys(metrics)]);
    if (names.size > MAX_STEP_METRICS) {
      throw new TrainingError("too_many_metrics", { step: newest.step, limit: MAX_STEP_METRICS });
    }
    modelTable.mergeMetrics(id, newest.step, metrics);
    return metrics;
  }

  #sourceOf({ modelId, step }: { modelId: string; step: number | null }, owner: string): StepSource {
    const found = this.step(modelId, owner, step ?? "latest").step;
    return { model: this.owned(modelId, owner), step: found, withOptimizer: true };
  }
}

/** Throws if a served model has this name. A policy with it could never be reached. */
export function assertFree(name: string, { bases, settings }: TrainingContext): void {
  if (bases.get(name) !== null || settings.isServedName(name)) throw new TrainingError("name_taken", { name });
}
