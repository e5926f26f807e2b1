// Training as one object: builds its parts, starts and stops them. The API and the composition at start-up know no
// other.

import { randomUUID } from "node:crypto";
import { EngineUnavailable } from "../errors/faults.ts";
import type { Log } from "../observe/log.ts";
import type { Store } from "../store/store.ts";
import { isOperation } from "../store/tables/jobs.ts";
import type { ModelRecord } from "../store/tables/models.ts";
import type { SeenServer } from "../store/tables/servers.ts";
import { tablesOn, transactionsOn } from "../store/tables/tables.ts";
import { Account, type AccountView } from "./account.ts";
import type { BaseModels } from "./base-models.ts";
import {
  type JobObserver,
  LEASE_TIMES,
  type LeaseTimes,
  type ServerPart,
  type TrainingContext,
  type TrainingSettings,
} from "./context.ts";
import type { Trainer } from "./contract.ts";
import { CurveWriter } from "./files/curves.ts";
import type { StepFolders } from "./files/step-folders.ts";
import { JobAttempts } from "./jobs/job-attempt.ts";
import { JobJournal } from "./jobs/job-journal.ts";
import { type AttemptJob, JobRunner } from "./jobs/job-runner.ts";
import { JobUpkeep, recover } from "./jobs/job-upkeep.ts";
import { Jobs } from "./jobs/jobs.ts";
import { Models } from "./models.ts";
import { NewsFeed } from "./news.ts";
import { Notes } from "./notes.ts";
import { Policies } from "./policies.ts";
import { Records } from "./records/records.ts";
import { OperationAttempts } from "./runs/operation-attempt.ts";
import { Runs } from "./runs/runs.ts";
import { StepPublisher } from "./steps/publish-step.ts";
import { FileUpkeep, StepRetention } from "./steps/step-upkeep.ts";

export interface TrainingOptions extends TrainingSettings {
  store: Store;
  /** Where adapters, job data and curves are. */
  workspace: StepFolders;
  bases: BaseModels;
  trainer: Trainer;
  log: Log;
  observer?: JobObserver;
  /** By default the only server, with a new id. */
  server?: ServerPart;
  times?: LeaseTimes;
}

/** Records take at most this part of a workspace's bytes, so that there is room for training. */
const RECORDS_SHARE = 4;

export class TrainingService {
  readonly models: Models;
  readonly jobs: Jobs;
  readonly runs: Runs;
  readonly policies: Policies;
  readonly news: NewsFeed;
  readonly notes: Notes;
  readonly bases: BaseModels;
  readonly #context: TrainingContext;
  readonly #curves: CurveWriter;
  readonly #files: FileUpkeep;
  readonly #journal: JobJournal;
  readonly #runner: JobRunner;
  readonly #upkeep: JobUpkeep;
  #closed = false;

  constructor({ store, workspace, bases, trainer, log, observer, server, times, ...settings }: TrainingOptions) {
    const tables = tablesOn(store);
    const transaction = transactionsOn(store);
    const here = server ?? { id: randomUUID(), runsJobs: true, alone: true };
    const { maxBytesPerOwner: limit, keepRecords: keep } = settings;
    const context: TrainingContext = {
      ...tables,
      transaction,
      account: new Account({ tables, transaction, server: here.id, limit, log }),
      hints: store,
      server: here,
      times: times ?? LEASE_TIMES,
      workspace,
      records: new Records(workspace.records, { ...keep, bytes: Math.min(keep.bytes, limit / RECORDS_SHARE) }),
      bases,
      trainer,
      settings,
      observer: observer ?? null,
      log,
    };
    this.#context = context;
    this.bases = bases;
    this.policies = new Policies(context);
    workspace.protect(
      (modelId, step, path) =>
        this.policies.inUse(modelId, step) || bases.names().some((name) => bases.get(name)!.slots.keeps(path)),
    );
    this.#curves = new CurveWriter(context);
    const publisher = new StepPublisher(context, this.policies);
    this.#files = new FileUpkeep(context, this.policies);
    const retention = new StepRetention(context, this.policies, this.#files, this.#curves);
    this.#journal = new JobJournal(context);
    const jobs = new JobAttempts(context, this.#journal, this.policies, publisher);
    const operations = new OperationAttempts(context, this.#journal, this.policies, publisher);
    const attempt: AttemptJob = (claimed, signal) =>
      (isOperation(claimed.job.kind) ? operations : jobs).run(claimed, signal);
    this.#runner = new JobRunner(context, this.#journal, attempt, retention);
    this.#upkeep = new JobUpkeep(context, this.#journal, this.#runner);
    this.news = new NewsFeed(context, this.#journal);
    this.notes = new Notes(context);
    this.jobs = new Jobs(context, this.#journal, this.#runner);
    this.runs = new Runs(context, publisher, this.#journal, this.#runner, this.jobs);
    this.models = new Models(context, this.policies, publisher, retention, this.#files, this.#runner);
  }

  /** Puts right what a crash left behind, then starts waiting jobs. */
  async start(): Promise<void> {
    const { modelTable, workspace, server } = this.#context;
    if (server.alone) {
      await recover(this.#context, this.#journal);
      // they take their time, and log their own failures
      for (const { id } of await modelTable.all()) void this.#curves.write(id);
    }
    workspace.keepReserve();
    await this.#files.sweep();
    this.#files.start();
    await this.#warnOfRanks();
    this.#upkeep.start();
    await this.#runner.pump();
  }

  /** Removes records of jobs that are beyond the bound, as happens now and then by itself. */
  tidyRecords(): Promise<void> {
    return this.#files.tidyRecords();
  }

  /** Releases reservations that nobody holds any more, as happens now and then by itself. */
  tidyAccounts(): Promise<void> {
    return this.#context.account.tidy();
  }

  /** What a workspace has on disk, and how much it may have. */
  account(owner: string): Promise<AccountView> {
    return this.#context.account.view(owner);
  }

  async stats(): Promise<{ running: number; pending: number }> {
    return { running: this.#runner.running, pending: await this.#context.jobTable.count("PENDING") };
  }

  /** The servers on the same store, and what they run. */
  servers(): Promise<SeenServer[]> {
    return this.#context.serverTable.list();
  }

  /** Throws when the database cannot be read. */
  async checkDatabase(): Promise<void> {
    await this.#context.jobTable.count("RUNNING");
  }

  /** Throws when jobs would not be run. */
  checkTrainer(): void {
    if (this.#closed) throw new Error("training is stopping");
  }

  /** Throws when a base model's policies cannot be served. */
  checkEngines(): void {
    for (const name of this.bases.names()) {
      if (!this.bases.get(name)!.engine.healthy()) throw new EngineUnavailable(`the engine of ${name} is not running`);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.news.close();
    this.#journal.close();
    await this.#runner.close();
    await this.#upkeep.close();
    await this.#context.trainer.close();
    await this.#files.close();
    await this.#curves.close();
  }

  async #warnOfRanks(): Promise<void> {
    const { modelTable, log } = this.#context;
    const unserved: ModelRecord[] = [];
    for (const model of await modelTable.all()) {
      if (this.bases.get(model.baseModel) && !(await this.policies.answers(model))) unserved.push(model);
    }
    if (unserved.length === 0) return;
    log.warn("trained models are not served: their rank is larger than --max-lora-rank", {
      models: unserved.map(({ name }) => name).join(),
      rank: unserved.reduce((most, { loraRank }) => Math.max(most, loraRank), 0),
    });
  }
}
