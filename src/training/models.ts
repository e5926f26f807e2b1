// Trainable models as clients see them: register, fork, list, roll back, log and delete.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { ModelSummary } from "../store/tables/model-summaries.ts";
import type { ModelFilter, ModelRecord, Owner, StepRecord } from "../store/tables/models.ts";
import type { TrainingContext } from "./context.ts";
import { type CurveQuery, type Curves, readCurves } from "./curves.ts";
import type { GroupLog } from "./data/group-metrics.ts";
import type { JobRunner } from "./jobs/job-runner.ts";
import type { HeldStep, Policies } from "./policies.ts";
import type { StepPublisher, StepSource } from "./steps/publish-step.ts";
import type { FileUpkeep, StepRetention } from "./steps/step-upkeep.ts";
import { TrainingError } from "./training-error.ts";

/** The metrics of a step are read whenever the step is. */
const MAX_STEP_METRICS = 10_000;

export interface NewModel extends Pick<ModelRecord, "owner" | "entity" | "project" | "name"> {
  /** null = the base model of the fork's source. */
  baseModel: string | null;
  returnExisting: boolean;
  /** The step to fork, of a model of `owner`; step null = the newest. */
  from: { modelId: string; step: number | null; owner: Owner } | null;
}

export class Models {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #publisher: StepPublisher;
  readonly #retention: StepRetention;
  readonly #files: FileUpkeep;
  readonly #runner: JobRunner;

  constructor(
    context: TrainingContext,
    policies: Policies,
    publisher: StepPublisher,
    retention: StepRetention,
    files: FileUpkeep,
    runner: JobRunner,
  ) {
    this.#context = context;
    this.#policies = policies;
    this.#publisher = publisher;
    this.#retention = retention;
    this.#files = files;
    this.#runner = runner;
  }

  async create(request: NewModel): Promise<ModelRecord> {
    const { modelTable, bases, settings } = this.#context;
    const { owner, entity, project, name } = request;
    const existing = await modelTable.named(owner, entity, project, name);
    if (existing && request.returnExisting) return existing;
    if (existing) throw new TrainingError("model_exists", { model: `${entity}/${project}/${name}` });
    assertFree(name, this.#context);
    const source = request.from && (await this.#sourceOf(request.from));
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
    try {
      return await this.#publisher.publishFirst(model, base, source);
    } catch (error) {
      if (!isModelExists(error) || !request.returnExisting) throw error;
      return this.create(request); // somebody else made it meanwhile
    }
  }

  async owned(id: string, owner: Owner): Promise<ModelRecord> {
    const model = await this.#context.modelTable.owned(id, owner);
    if (!model) throw new TrainingError("unknown_model", { id });
    return model;
  }

  list(owner: Owner, filter: ModelFilter, after: string | null, limit: number): Promise<ModelRecord[]> {
    return this.#context.modelTable.list(owner, filter, after, limit);
  }

  async curves(id: string, owner: Owner, query: CurveQuery): Promise<Curves> {
    return readCurves(this.#context, await this.owned(id, owner), query);
  }

  /** What lists show of the models, in their order. */
  summaries(models: readonly ModelRecord[]): Promise<ModelSummary[]> {
    return this.#context.modelSummaryTable.of(models);
  }

  /** Deletes a model with its steps, jobs and their events. Whoever follows an open job first hears that it ended. */
  async delete(id: string, owner: Owner): Promise<{ deletedCheckpoints: number }> {
    const { workspace, records, log } = this.#context;
    await this.owned(id, owner);
    let steps: StepRecord[] | null = null;
    while (!steps) {
      await this.#runner.cancelJobsOf(id, "its model was deleted");
      steps = await workspace.makingRoom(() => this.#policies.removing(() => this.#deleteRows(id)));
    }
    await records.removeModel(id).catch((error: unknown) => {
      // cleared away later, as they belong to no job any more
      log.warn("records of a deleted model are still there", { model: id, error });
    });
    await this.#files.sweep();
    return { deletedCheckpoints: steps.length };
  }

  async step(id: string, owner: Owner, step: number | "latest"): Promise<StepRecord> {
    const { modelTable } = this.#context;
    const model = await this.owned(id, owner);
    const found = await (step === "latest" ? modelTable.newestStep(model.id) : modelTable.step(model.id, step));
    if (!found) throw new TrainingError("unknown_step", { step });
    return found;
  }

  /** A step and the folder with its adapter, whose files stay until `release` is called. */
  async openStep(id: string, owner: Owner, step: number | "latest"): Promise<{ step: StepRecord } & HeldStep> {
    const found = await this.step(id, owner, step);
    return { step: found, ...(await this.#policies.hold(found.modelId, found.step, "adapter", {})) };
  }

  async steps(id: string, owner: Owner): Promise<StepRecord[]> {
    return this.#context.modelTable.steps((await this.owned(id, owner)).id);
  }

  /** Keeps the newest step and steps in use, and says which. */
  async deleteSteps(id: string, owner: Owner, steps: readonly number[]) {
    const { modelTable } = this.#context;
    const newest = (await modelTable.newestStep((await this.owned(id, owner)).id))?.step;
    const wanted = [...new Set(steps)];
    const known = new Set((await modelTable.steps(id)).map(({ step }) => step));
    const existing = wanted.filter((step) => known.has(step));
    const kept: number[] = [];
    for (const step of existing) {
      if (step === newest || !(await this.#retention.remove(id, step))) kept.push(step);
    }
    return {
      deletedCount: existing.length - kept.length,
      notFoundSteps: wanted.filter((step) => !existing.includes(step)),
      keptSteps: kept,
    };
  }

  /** Makes a new newest step with the weights (and optimizer state) of an old one. */
  async rollback(id: string, owner: string, step: number): Promise<StepRecord> {
    const model = await this.owned(id, owner);
    await this.step(id, owner, step);
    if ((await this.#context.jobTable.countOpenOf(id)) > 0) throw new TrainingError("model_busy", {});
    const made = await this.#publisher.publishCopy(model, step);
    await this.#retention.afterStep(id);
    return made;
  }

  /** Keeps the metrics of evaluated groups with the newest step, where clients that prune look for them. */
  async log(id: string, owner: string, split: string, groups: GroupLog): Promise<Record<string, number>> {
    await this.owned(id, owner);
    const metrics = groups.metrics(split);
    await this.#context.transaction(async (tx) => {
      const { modelTable } = tx;
      const newest = await modelTable.newestStep(id);
      if (!newest) return;
      const merged = { ...newest.metrics, ...metrics };
      if (Object.keys(merged).length > MAX_STEP_METRICS) {
        throw new TrainingError("too_many_metrics", { step: newest.step, limit: MAX_STEP_METRICS });
      }
      const more = sizeOf(merged) - sizeOf(newest.metrics);
      if (more > 0) await this.#context.account.assertRoom(tx, owner, more);
      await modelTable.setMetrics(id, newest.step, merged);
    });
    return metrics;
  }

  /** Deletes the model with its jobs and returns its steps. null = it has open jobs: without a row, none could end. */
  #deleteRows(id: string): Promise<StepRecord[] | null> {
    return this.#context.transaction(async ({ jobTable, modelTable, runTable, removedStepTable, newsTable }) => {
      if ((await jobTable.countOpenOf(id)) > 0) return null;
      const model = await modelTable.get(id);
      if (!model) return []; // somebody else deleted it meanwhile
      const { owner } = model;
      await newsTable.modelDeleted(model, Date.now());
      const steps = await modelTable.steps(id);
      const gone = { modelId: id, removedAt: Date.now(), owner };
      await removedStepTable.insert({ ...gone, step: null, folder: id, bytes: await runTable.gradientBytes(id) });
      for (const { step, folder, bytes } of steps) {
        await removedStepTable.insert({ ...gone, step, folder: join(id, folder), bytes });
      }
      await jobTable.deleteOf(id);
      await modelTable.delete(id);
      return steps;
    });
  }

  async #sourceOf({ modelId, step, owner }: NonNullable<NewModel["from"]>): Promise<StepSource> {
    const found = (await this.step(modelId, owner, step ?? "latest")).step;
    return { model: await this.owned(modelId, owner), step: found, withOptimizer: true };
  }
}

/** In bytes, as the database has it. */
function sizeOf(metrics: Record<string, number>): number {
  return Buffer.byteLength(JSON.stringify(metrics));
}

/** Whether publishing a model's first step failed because its name was taken meanwhile. */
export function isModelExists(error: unknown): boolean {
  return error instanceof TrainingError && error.code === "model_exists";
}

/** Throws if a served model has this name. A policy with it could never be reached. */
export function assertFree(name: string, { bases, settings }: TrainingContext): void {
  if (bases.get(name) !== null || settings.isServedName(name)) throw new TrainingError("name_taken", { name });
}
