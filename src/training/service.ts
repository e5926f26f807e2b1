// Everything training needs, put together: tables, files, the line of jobs, policies for serving. The one object the API
// and the composition at start-up know.

import type { Log } from "../observe/log.ts";
import type { Store } from "../store/db.ts";
import { EventTable } from "../store/event-table.ts";
import { JobTable } from "../store/job-table.ts";
import { ModelTable } from "../store/model-table.ts";
import type { BaseModels } from "./base-models.ts";
import type { Trainer } from "./contract.ts";
import type { LoraShape } from "./files/adapter-files.ts";
import { writeCurves } from "./files/curves.ts";
import { Workspace } from "./files/workspace.ts";
import { JobRunner } from "./jobs/job-runner.ts";
import { type JobLimits, type JobObserver, Jobs } from "./jobs/jobs.ts";
import { recover } from "./jobs/recovery.ts";
import { Models } from "./models.ts";
import { Policies } from "./policies.ts";

export interface TrainingOptions extends JobLimits {
  store: Store;
  /** Folder for adapters, job data and curves. */
  folder: string;
  bases: BaseModels;
  trainer: Trainer;
  log: Log;
  observer?: JobObserver;
  lora: LoraShape;
  maxParallelJobs: number;
  /** Steps kept per model: beyond it the oldest go, never the newest or one in use. */
  maxStepsPerModel: number;
  threads: number;
  activationBytes: number;
}

export class TrainingService {
  readonly models: Models;
  readonly jobs: Jobs;
  readonly policies: Policies;
  readonly bases: BaseModels;
  readonly #options: TrainingOptions;
  readonly #tables: { models: ModelTable; jobs: JobTable; events: EventTable };
  readonly #workspace: Workspace;
  readonly #runner: JobRunner;
  /** Being written, by model. */
  readonly #curves = new Map<string, Promise<void>>();
  #closed = false;

  constructor(options: TrainingOptions) {
    const { store, bases, trainer, log, threads, activationBytes } = options;
    this.#options = options;
    this.bases = bases;
    const models = new ModelTable(store);
    const events = new EventTable(store);
    const jobTable = new JobTable(store, events);
    const workspace = new Workspace(options.folder);
    this.#tables = { models, jobs: jobTable, events };
    this.#workspace = workspace;
    this.policies = new Policies(models, bases, workspace, log);
    this.jobs = new Jobs({
      store,
      models,
      jobs: jobTable,
      events,
      workspace,
      limits: options,
      observer: options.observer ?? null,
      log,
    });
    this.#runner = new JobRunner(
      {
        models,
        jobTable,
        events,
        jobs: this.jobs,
        bases,
        policies: this.policies,
        workspace,
        trainer,
        threads,
        activationBytes,
      },
      { maxParallelJobs: options.maxParallelJobs, log, onPublished: (modelId) => this.#afterStep(modelId) },
    );
    this.models = new Models({
      store,
      models,
      jobs: jobTable,
      bases,
      policies: this.policies,
      workspace,
      lora: options.lora,
      afterStep: (modelId) =>
        this.#afterStep(modelId).catch((error) => log.error("after a rollback", { model: modelId, error })),
      cancelJobsOf: (modelId, why) => this.#runner.cancelJobsOf(modelId, why),
    });
    this.jobs.onChange = (change) => {
      if (change.type === "submitted") this.#runner.pump();
      else this.#runner.cancel(change.id, "cancelled");
    };
  }

  /** Puts right what a crash left, then starts what is waiting. */
  start(): void {
    const { models, jobs: jobTable } = this.#tables;
    recover({ models, jobTable, jobs: this.jobs, workspace: this.#workspace, log: this.#options.log });
    for (const { id } of models.all()) {
      this.#writeCurves(id).catch((error) =>
        this.#options.log.error("curves could not be written", { model: id, error }),
      );
    }
    this.#workspace.keepReserve();
    this.#warnOfRanks();
    this.#runner.pump();
  }

  stats(): { running: number; pending: number } {
    return { running: this.#runner.running, pending: this.#tables.jobs.count("PENDING") };
  }

  /** Throws when the database cannot be read. */
  checkDatabase(): void {
    this.#tables.jobs.count("RUNNING");
  }

  /** Throws when jobs would not be run. */
  checkTrainer(): void {
    if (this.#closed) throw new Error("training is stopping");
  }

  /** Throws when a base model's policies cannot be served. */
  checkEngines(): void {
    for (const name of this.bases.names()) {
      if (!this.bases.get(name)!.engine.healthy()) throw new Error(`the engine of ${name} is not running`);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#runner.close();
    await this.#options.trainer.close();
  }

  #warnOfRanks(): void {
    const { models } = this.#tables;
    const unserved = models.all().filter((model) => this.bases.get(model.baseModel) && !this.policies.answers(model));
    if (unserved.length === 0) return;
    this.#options.log.warn("trained models are not served: their rank is larger than --max-lora-rank", {
      models: unserved.map(({ name }) => name).join(),
      rank: unserved.reduce((most, { loraRank }) => Math.max(most, loraRank), 0),
    });
  }

  /** One after the other for each model. */
  #writeCurves(modelId: string): Promise<void> {
    const before = this.#curves.get(modelId) ?? Promise.resolve();
    const work = before
      .catch(() => {})
      .then(() => writeCurves(modelId, { ...this.#tables, workspace: this.#workspace }))
      .finally(() => {
        if (this.#curves.get(modelId) === work) this.#curves.delete(modelId);
      });
    this.#curves.set(modelId, work);
    return work;
  }

  async #afterStep(modelId: string): Promise<void> {
    this.#workspace.keepReserve();
    await this.#writeCurves(modelId);
    let excess = this.#tables.models.countSteps(modelId) - this.#options.maxStepsPerModel;
    if (excess <= 0) return;
    for (const { step } of this.#tables.models.steps(modelId).slice(0, -1)) {
      if (excess <= 0) break;
      if (this.policies.inUse(modelId, step)) continue;
      await this.models.removeStep(modelId, step);
      excess--;
    }
  }
}
