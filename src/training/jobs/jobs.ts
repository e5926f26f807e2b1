// Training jobs as clients see them: accepted once their data is on the disk and their row is committed, then listed,
// watched and cancelled. Running them is the runner's business.

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { ServiceError } from "../../errors/service-error.ts";
import type { Log } from "../../observe/log.ts";
import type { Store } from "../../store/db.ts";
import type { EventTable, JobEvent } from "../../store/event-table.ts";
import { isFinal, type JobStatus } from "../../store/job-state.ts";
import type { JobEnd, JobRecord, JobTable } from "../../store/job-table.ts";
import type { ModelTable } from "../../store/model-table.ts";
import type { RlConfig, SftConfig } from "../config.ts";
import { asStorageFull, storageFull } from "../files/disk-full.ts";
import type { Workspace } from "../files/workspace.ts";
import { InputWriter } from "./job-input.ts";
import { klReferenceStep } from "./kl-reference.ts";

export interface JobLimits {
  /** Waiting and running jobs of one owner. */
  maxOpenJobs: number;
  /** Bytes of all steps of one owner. */
  maxBytesPerOwner: number;
}

/** Data of a job that is still arriving. */
export interface JobDraft {
  id: string;
  input: InputWriter;
  /** The file `input` writes. */
  path: string;
}

export interface Submission {
  owner: string;
  modelId: string;
  spec: { kind: "rl"; config: RlConfig } | { kind: "sft"; config: SftConfig };
  idempotencyKey: string | null;
  /** Of the body, so that a repeated key can be told from a reused one. */
  requestHash: string;
}

/** Told what happens, for whoever counts it. */
export interface JobObserver {
  trainingJobs(waiting: number, running: number): void;
  gradientStep(): void;
  trainingJobEnded(status: string, seconds: number, tokens: number): void;
}

export interface JobsDeps {
  store: Store;
  models: ModelTable;
  jobs: JobTable;
  events: EventTable;
  workspace: Workspace;
  limits: JobLimits;
  observer: JobObserver | null;
  log: Log;
}

export class Jobs {
  readonly #deps: JobsDeps;
  readonly #watchers = new EventEmitter().setMaxListeners(0);
  /** Told about every accepted job and every cancellation. */
  onChange: (change: { type: "submitted" } | { type: "cancel"; id: string }) => void = () => {};

  constructor(deps: JobsDeps) {
    this.#deps = deps;
  }

  async draft(): Promise<JobDraft> {
    // what is taken must be able to end
    if (!this.#deps.workspace.keepReserve()) throw storageFull();
    const id = randomUUID();
    try {
      this.#deps.workspace.createJobFolder(id);
      const path = this.#deps.workspace.jobInput(id);
      return { id, path, input: await InputWriter.create(path) };
    } catch (error) {
      this.#deps.workspace.removeJob(id);
      throw asStorageFull(error);
    }
  }

  async discard(draft: JobDraft): Promise<void> {
    await draft.input.abandon();
    this.#deps.workspace.removeJob(draft.id);
  }

  /** Accepts the job: after this returns it will be run or end with a reason, whatever happens to the process. */
  async submit(draft: JobDraft, submission: Submission): Promise<JobRecord> {
    const { job, created } = await this.#insert(draft, submission);
    if (created) {
      this.onChange({ type: "submitted" });
      this.#count();
      return job;
    }
    await this.discard(draft);
    if (job.requestHash !== submission.requestHash) {
      throw new ServiceError("idempotency_key_reused", "This Idempotency-Key belongs to a job with another body.");
    }
    return job;
  }

  /** The new job, or the one that has its idempotency key. */
  async #insert(draft: JobDraft, submission: Submission): Promise<{ job: JobRecord; created: boolean }> {
    const { owner, modelId, idempotencyKey, requestHash, spec } = submission;
    try {
      await draft.input.finish();
      return this.#deps.store.transaction(() => {
        const known = idempotencyKey === null ? null : this.#deps.jobs.byIdempotencyKey(owner, idempotencyKey);
        if (known) return { job: known, created: false };
        if (!this.#deps.models.owned(modelId, owner)) {
          // deleted while the data arrived
          throw new ServiceError("unknown_training_model", `There is no model ${modelId}.`, { param: "model_id" });
        }
        this.#checkLimits(owner);
        if (spec.kind === "rl") this.checkReference(modelId, spec.config);
        const config = JSON.stringify(spec.config);
        const row = { id: draft.id, modelId, owner, kind: spec.kind, config, idempotencyKey, requestHash };
        return { job: this.#deps.jobs.insert(row), created: true };
      });
    } catch (error) {
      await this.discard(draft);
      throw asStorageFull(error);
    }
  }

  /** Throws when a job that is submitted now would find nothing to compare with. */
  checkReference(modelId: string, config: RlConfig): void {
    const { models, jobs } = this.#deps;
    const newest = models.newestStep(modelId)?.step ?? 0;
    klReferenceStep(config, modelId, newest + jobs.countOpenOf(modelId), models);
  }

  owned(id: string, owner: string): JobRecord {
    const job = this.#deps.jobs.owned(id, owner);
    if (!job) throw unknownJob(id);
    return job;
  }

  list(
    owner: string,
    modelId: string | null,
    status: JobStatus | null,
    after: string | null,
    limit: number,
  ): JobRecord[] {
    return this.#deps.jobs.list(owner, modelId, status, after, limit);
  }

  /** A job that is over stays as it is. A running one ends within its current gradient step. */
  cancel(id: string, owner: string): JobRecord {
    const job = this.owned(id, owner);
    if (isFinal(job.status)) return job;
    const { jobs, workspace } = this.#deps;
    workspace.makingRoom(() => jobs.requestCancel(id));
    if (job.status === "PENDING") workspace.makingRoom(() => this.finish(id, cancelled("cancelled before it started")));
    else this.onChange({ type: "cancel", id });
    return this.owned(id, owner);
  }

  /** `after`: an event id of this job, exclusive. */
  events(id: string, after: string | null, limit: number): JobEvent[] {
    if (!this.#deps.jobs.has(id)) throw unknownJob(id);
    const events = this.#deps.events.list(id, after, limit);
    if (!events)
      throw new ServiceError("unknown_training_job", `${after} is not an event of this job.`, { param: "after" });
    return events;
  }

  /** Progress: a loss of power may take it back, the repeated attempt then says it again. */
  addEvent(id: string, type: string, data: Record<string, unknown>): void {
    const { store, events, observer } = this.#deps;
    if (type === "gradient_step") observer?.gradientStep();
    if (type === "training_started") this.#count();
    const event = store.relaxed(() => events.add(id, type, data));
    this.#tell(id, event);
  }

  /**
   * The final status and event, in one transaction with `alongside`; frees the job's files. Throws only while nothing is
   * recorded: the caller may then take back what it did, a published step too.
   */
  finish(id: string, end: JobEnd, alongside: () => void = () => {}): void {
    const event = this.#deps.jobs.finish(id, end, alongside);
    try {
      this.#tell(id, event);
      this.#countEnd(id, end);
      // what cannot be deleted now, the next start deletes
      this.#deps.workspace.removeJob(id);
    } catch (error) {
      this.#deps.log.error("after the end of a training job", { job: id, error });
    }
  }

  #countEnd(id: string, end: JobEnd): void {
    this.#count();
    const { trainingStart, trainingEnd } = this.#deps.jobs.get(id)!;
    const seconds = trainingStart && trainingEnd ? (Date.parse(trainingEnd) - Date.parse(trainingStart)) / 1000 : 0;
    this.#deps.observer?.trainingJobEnded(end.status, seconds, end.tokens);
  }

  /** Calls `listener` for every event from now on, until the returned function is called. */
  watch(id: string, listener: (event: JobEvent) => void): () => void {
    this.#watchers.on(id, listener);
    return () => this.#watchers.off(id, listener);
  }

  /** One that fails has no part in the job. */
  #tell(id: string, event: JobEvent): void {
    for (const listener of this.#watchers.listeners(id)) {
      try {
        listener(event);
      } catch (error) {
        this.#deps.log.error("following a training job", { job: id, error });
      }
    }
  }

  #count(): void {
    const { jobs, observer } = this.#deps;
    observer?.trainingJobs(jobs.count("PENDING"), jobs.count("RUNNING"));
  }

  #checkLimits(owner: string): void {
    const { maxOpenJobs, maxBytesPerOwner } = this.#deps.limits;
    if (this.#deps.jobs.countOpen(owner) >= maxOpenJobs) {
      throw new ServiceError("quota_exceeded", `At most ${maxOpenJobs} jobs may be waiting or running at once.`);
    }
    const bytes = this.#deps.models.bytesOf(owner);
    if (bytes >= maxBytesPerOwner) {
      const used = `Checkpoints use ${bytes} of ${maxBytesPerOwner} bytes`;
      throw new ServiceError("quota_exceeded", `${used}; delete some before training on.`);
    }
  }
}

function unknownJob(id: string): ServiceError {
  return new ServiceError("unknown_training_job", `There is no training job ${id}.`);
}

/** Old clients only know that a job failed; the message says that somebody wanted it. */
export function cancelled(why: string): JobEnd {
  return {
    status: "CANCELLED",
    errorMessage: why,
    toStep: null,
    report: null,
    rewardStdDev: null,
    tokens: 0,
    event: { type: "training_failed", data: { error_message: why } },
  };
}

export function failed(why: string): JobEnd {
  return { ...cancelled(why), status: "FAILED" };
}
