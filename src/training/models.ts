// Trainable models: registering, forking, rolling back, logging, pruning and deleting. Files first, rows second when
// something appears; rows first, files second when something goes: a crash in between leaves only files that nobody
// knows, which the next start clears away.

import { randomUUID } from "node:crypto";
import { ServiceError } from "../errors/service-error.ts";
import { readModelConfig } from "../model/checkpoint/model-config.ts";
import { loadPeft, savePeft } from "../model/lora/peft.ts";
import type { Store } from "../store/db.ts";
import type { JobTable } from "../store/job-table.ts";
import type { ModelFilter, ModelRecord, ModelTable, StepRecord } from "../store/model-table.ts";
import type { BaseModels } from "./base-models.ts";
import { DEFAULT_SEED } from "./config.ts";
import type { GroupLog } from "./data/group-metrics.ts";
import { copyStep, identityAdapter, type LoraShape } from "./files/adapter-files.ts";
import { asStorageFull } from "./files/disk-full.ts";
import { folderBytes, type Workspace } from "./files/workspace.ts";
import type { Policies } from "./policies.ts";

/** They are read whenever the step is. */
const MAX_STEP_METRICS = 10_000;

export interface NewModel {
  owner: string;
  entity: string;
  project: string;
  name: string;
  /** null = the base model of the fork's source. */
  baseModel: string | null;
  returnExisting: boolean;
  from: { modelId: string; step: number | null } | null;
}

export interface ModelsDeps {
  store: Store;
  models: ModelTable;
  jobs: JobTable;
  bases: BaseModels;
  policies: Policies;
  workspace: Workspace;
  lora: LoraShape;
  /** What follows every new step but the first: the oldest ones may have to go. */
  afterStep(modelId: string): Promise<void>;
  /** Ends a model's open jobs and waits until none runs. */
  cancelJobsOf(modelId: string, why: string): Promise<void>;
}

export class Models {
  readonly #deps: ModelsDeps;
  /** Whether somebody else answers to this name, as the base model does: a policy of this name would not be asked. */
  servedElsewhere: (name: string) => boolean = () => false;

  constructor(deps: ModelsDeps) {
    this.#deps = deps;
  }

  create(request: NewModel): ModelRecord {
    const { models, bases } = this.#deps;
    const { owner, entity, project, name } = request;
    const existing = models.named(owner, entity, project, name);
    if (existing && request.returnExisting) return existing;
    if (existing) {
      const fix = "choose another name or send return_existing: true";
      throw new ServiceError("model_exists", `A model ${entity}/${project}/${name} exists already; ${fix}.`);
    }
    if (bases.get(name) !== null || this.servedElsewhere(name)) {
      throw new ServiceError("name_taken", `${name} is the name of a served model; choose another one.`, {
        param: "name",
      });
    }
    const source = request.from && this.#source(request.from, owner);
    const baseModel = request.baseModel ?? source?.model.baseModel;
    const base = baseModel === undefined ? null : bases.get(baseModel);
    if (!base) {
      const known = bases.names().join(", ");
      throw new ServiceError("unknown_base_model", `The base model ${baseModel} is not here; known: ${known}.`, {
        param: "base_model",
      });
    }
    // by what the names mean: the base model may have got another one since
    if (source && bases.get(source.model.baseModel) !== base) {
      const message = `A fork keeps the base model of its source, ${source.model.baseModel}.`;
      throw new ServiceError("unknown_base_model", message, { param: "base_model" });
    }
    const lora = source ? { rank: source.model.loraRank, alpha: source.model.loraAlpha } : this.#deps.lora;
    const step = source?.step ?? 0;
    const id = randomUUID();
    const model = { id, owner, entity, project, name, baseModel: base.name, nextStep: step };
    return this.#publishFirst({ ...model, loraRank: lora.rank, loraAlpha: lora.alpha }, step, (folder) => {
      if (source) return this.#copySound(source.model, source.step, folder);
      const config = readModelConfig(base.folder);
      savePeft(folder, identityAdapter(config, lora, DEFAULT_SEED), config, { baseModel: base.name });
    });
  }

  owned(id: string, owner: string): ModelRecord {
    const model = this.#deps.models.owned(id, owner);
    if (!model) throw new ServiceError("unknown_training_model", `There is no model ${id}.`, { param: "model_id" });
    return model;
  }

  list(owner: string, filter: ModelFilter, after: string | null, limit: number): ModelRecord[] {
    return this.#deps.models.list(owner, filter, after, limit);
  }

  /** With its steps, jobs and their events. Whoever follows an open job hears its end first. */
  async delete(id: string, owner: string): Promise<{ deletedCheckpoints: number }> {
    const { store, models, jobs, policies, bases, workspace, cancelJobsOf } = this.#deps;
    const model = this.owned(id, owner);
    // nothing is awaited between the last look and the transaction: a job whose row is gone could never end
    while (jobs.openOf(id).length > 0) await cancelJobsOf(id, "its model was deleted");
    const steps = models.steps(id);
    workspace.makingRoom(() =>
      store.transaction(() => {
        jobs.deleteOf(id);
        models.delete(id);
      }),
    );
    for (const { step } of steps) await policies.unload(id, step, bases.get(model.baseModel));
    workspace.removeModel(id);
    return { deletedCheckpoints: steps.length };
  }

  step(id: string, owner: string, step: number | "latest"): StepRecord {
    const { models } = this.#deps;
    const found =
      step === "latest" ? models.newestStep(this.owned(id, owner).id) : models.step(this.owned(id, owner).id, step);
    if (!found) throw new ServiceError("unknown_checkpoint", `The model has no step ${step}.`);
    return found;
  }

  steps(id: string, owner: string): StepRecord[] {
    return this.#deps.models.steps(this.owned(id, owner).id);
  }

  /** Leaves the newest step and steps in use alone; says so. */
  async deleteSteps(id: string, owner: string, steps: readonly number[]) {
    const { models } = this.#deps;
    const newest = models.newestStep(this.owned(id, owner).id)?.step;
    const wanted = [...new Set(steps)];
    const existing = wanted.filter((step) => models.step(id, step) !== null);
    const kept: number[] = [];
    for (const step of existing) {
      // looked at just before: a request may have taken it while another was removed
      if (step === newest || this.#deps.policies.inUse(id, step)) kept.push(step);
      else await this.removeStep(id, step);
    }
    return {
      deletedCount: existing.length - kept.length,
      notFoundSteps: wanted.filter((step) => !existing.includes(step)),
      keptSteps: kept,
    };
  }

  /** Row first: from then on nobody can ask for it. */
  async removeStep(id: string, step: number): Promise<void> {
    const { models, policies, bases, workspace } = this.#deps;
    const baseModel = models.get(id)?.baseModel;
    workspace.makingRoom(() => models.deleteStep(id, step));
    await policies.unload(id, step, baseModel === undefined ? null : bases.get(baseModel));
    workspace.removeStep(id, step);
  }

  /** A new newest step with the weights (and optimiser state) of an old one. */
  async rollback(id: string, owner: string, step: number): Promise<StepRecord> {
    const { jobs, policies, bases, afterStep } = this.#deps;
    const model = this.owned(id, owner);
    this.step(id, owner, step);
    if (jobs.openOf(id).length > 0) {
      throw new ServiceError("model_busy", "The model has open training jobs; wait for them or cancel them first.");
    }
    const made = this.#copyAsNewest(model, step);
    const base = bases.get(model.baseModel);
    if (base) await policies.loadAhead(model, made.step, base);
    await afterStep(id);
    return made;
  }

  /** In one go: two rollbacks, or a rollback and a job, cannot take the same number, nor can the old step disappear. */
  #copyAsNewest(model: ModelRecord, step: number): StepRecord {
    const { store, models, workspace } = this.#deps;
    const { id, nextStep } = model;
    const staging = workspace.newStaging(id, `rollback-${nextStep}`);
    try {
      this.#copySound(model, step, staging);
      workspace.publish(staging, id, nextStep);
      const bytes = folderBytes(workspace.stepFolder(id, nextStep));
      return store.transaction(() => {
        models.insertStep(id, nextStep, null, bytes, { rolled_back_to: step });
        return models.step(id, nextStep)!;
      });
    } catch (error) {
      workspace.removeStaging(staging);
      workspace.removeStep(id, nextStep);
      throw asStorageFull(error);
    }
  }

  /** Copies a step's files, if they are what they should be. */
  #copySound(model: ModelRecord, step: number, to: string): void {
    const { bases, workspace } = this.#deps;
    const folder = workspace.stepFolder(model.id, step);
    const base = bases.get(model.baseModel);
    try {
      if (base) loadPeft(folder, readModelConfig(base.folder));
    } catch (cause) {
      throw new ServiceError("damaged_checkpoint", `The files of step ${step} are damaged.`, { param: "step", cause });
    }
    copyStep(folder, to);
  }

  /** Metrics of evaluated groups go to the newest step, where pruning clients look for them. */
  log(id: string, owner: string, split: string, groups: GroupLog): Record<string, number> {
    const { models } = this.#deps;
    const newest = models.newestStep(this.owned(id, owner).id);
    const metrics = groups.metrics(split);
    if (!newest) return metrics;
    const names = new Set([...Object.keys(newest.metrics), ...Object.keys(metrics)]);
    if (names.size > MAX_STEP_METRICS) {
      const message = `Step ${newest.step} would have more than ${MAX_STEP_METRICS} metrics.`;
      throw new ServiceError("invalid_training_request", message, { param: "trajectory_groups" });
    }
    models.mergeMetrics(id, newest.step, metrics);
    return metrics;
  }

  #source({ modelId, step }: { modelId: string; step: number | null }, owner: string) {
    const model = this.owned(modelId, owner);
    return { model, step: this.step(modelId, owner, step ?? "latest").step };
  }

  #publishFirst(model: Omit<ModelRecord, "createdAt">, step: number, write: (folder: string) => void): ModelRecord {
    const { store, models, workspace } = this.#deps;
    try {
      const staging = workspace.newStaging(model.id, "first");
      write(staging);
      workspace.publish(staging, model.id, step);
      const bytes = folderBytes(workspace.stepFolder(model.id, step));
      return store.transaction(() => {
        const record = models.insert(model);
        models.insertStep(model.id, step, null, bytes, {});
        return { ...record, nextStep: step + 1 };
      });
    } catch (error) {
      workspace.removeModel(model.id);
      throw asStorageFull(error);
    }
  }
}
