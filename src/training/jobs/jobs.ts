// Training jobs as clients see them. A job is accepted once its data is on disk and its row is committed; then it can
// be listed, watched and cancelled. job-runner.ts runs it.

import { randomUUID } from "node:crypto";
import type { JobEvent } from "../../store/event-table.ts";
import { isFinal, type JobStatus } from "../../store/job-state.ts";
import type { JobRecord } from "../../store/job-table.ts";
import type { RlConfig, SftConfig } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import { TrainingError } from "../training-error.ts";
import { InputWriter } from "./job-input.ts";
import { cancelled, type JobJournal } from "./job-journal.ts";
import type { JobRunner } from "./job-runner.ts";
import { klReferenceStep } from "./kl-reference.ts";

/** Data of a job that is still arriving. */
export interface JobDraft {
  id: string;
  input: InputWriter;
  /** The file that `input` writes. */
  path: string;
}

export interface Submission {
  owner: string;
  modelId: string;
  spec: { kind: "rl"; config: RlConfig } | { kind: "sft"; config: SftConfig };
  idempotencyKey: string | null;
  /** Hash of the body: tells a repeated request from a reused key. */
  requestHash: string;
}

export class Jobs {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #runner: JobRunner;

  constructor(context: TrainingContext, journal: JobJournal, runner: JobRunner) {
    this.#context = context;
    this.#journal = journal;
    this.#runner = runner;
  }

  async draft(): Promise<JobDraft> {
    const { workspace } = this.#context;
    // a job that is accepted must be able to end
    if (!workspace.keepReserve()) throw new TrainingError("storage_full", {});
    const id = randomUUID();
    try {
      workspace.createJobFolder(id);
      const path = workspace.jobInput(id);
      return { id, path, input: await InputWriter.create(path) };
    } catch (error) {
      workspace.removeJob(id);
      throw error;
    }
  }

  async discard(draft: JobDraft): Promise<void> {
    await draft.input.abandon();
    this.#context.workspace.removeJob(draft.id);
  }

  /** Accepts the job. Once this returns, the job will run or end with a reason, even if the process crashes. */
  async submit(draft: JobDraft, submission: Submission): Promise<JobRecord> {
    const { job, created } = await this.#insert(draft, submission);
    if (created) {
      this.#runner.pump();
      this.#journal.countJobs();
      return job;
    }
    await this.discard(draft);
    if (job.requestHash !== submission.requestHash) throw new TrainingError("idempotency_key_reused", {});
    return job;
  }

  /** The new job, or the one that has its idempotency key. */
  async #insert(draft: JobDraft, submission: Submission): Promise<{ job: JobRecord; created: boolean }> {
    const { store, modelTable, jobTable } = this.#context;
    const { owner, modelId, idempotencyKey, requestHash, spec } = submission;
    try {
      await draft.input.finish();
      return store.transaction(() => {
        const known = idempotencyKey === null ? null : jobTable.byIdempotencyKey(owner, idempotencyKey);
        if (known) return { job: known, created: false };
        // it may have been deleted while the data arrived
        if (!modelTable.owned(modelId, owner)) throw new TrainingError("unknown_model", { id: modelId });
        this.checkLimits(owner);
        if (spec.kind === "rl") this.checkReference(modelId, spec.config);
        const config = JSON.stringify(spec.config);
        const row = { id: draft.id, modelId, owner, kind: spec.kind, config, idempotencyKey, requestHash };
        return { job: jobTable.insert(row), created: true };
      });
    } catch (error) {
      await this.discard(draft);
      throw error;
    }
  }

  /** Throws if a job submitted now would have no reference for its KL penalty. */
  checkReference(modelId: string, config: RlConfig): void {
    const { modelTable, jobTable } = this.#context;
    const newest = modelTable.newestStep(modelId)?.step ?? 0;
    klReferenceStep(config, modelId, newest + jobTable.countOpenOf(modelId), modelTable);
  }

  owned(id: string, owner: string): JobRecord {
    const job = this.#context.jobTable.owned(id, owner);
    if (!job) throw new TrainingError("unknown_job", { id });
    return job;
  }

  list(
    owner: string,
    modelId: string | null,
    status: JobStatus | null,
    after: string | null,
    limit: number,
  ): JobRecord[] {
    return this.#context.jobTable.list(owner, modelId, status, after, limit);
  }

  /** A job that is over stays as it is. A running one ends within its current gradient step. */
  cancel(id: string, owner: string): JobRecord {
    const job = this.owned(id, owner);
    if (isFinal(job.status)) return job;
    this.stop(job);
    return this.owned(id, owner);
  }

  /** Cancels an open job or operation. */
  stop({ id, status }: JobRecord): void {
    const { jobTable, workspace } = this.#context;
    workspace.makingRoom(() => jobTable.requestCancel(id));
    if (status === "RUNNING") this.#runner.cancel(id, "cancelled");
    else workspace.makingRoom(() => this.#journal.finish(id, cancelled("cancelled before it started")));
  }

  /** Oldest first. `after`: id of an event of this job, exclusive. */
  events(id: string, after: string | null, limit: number): JobEvent[] {
    const { jobTable, eventTable } = this.#context;
    if (!jobTable.has(id)) throw new TrainingError("unknown_job", { id });
    const events = eventTable.list(id, after, limit);
    if (!events) throw new TrainingError("unknown_event", { id: after! });
    return events;
  }

  /** Calls `listener` for every event from now on, until the returned function is called. */
  watch(id: string, listener: (event: JobEvent) => void): () => void {
    return this.#journal.watch(id, listener);
  }

  /** Throws if the owner may not add another job now. */
  checkLimits(owner: string): void {
    const { modelTable, jobTable, settings } = this.#context;
    const { maxOpenJobs, maxBytesPerOwner: limit } = settings;
    if (jobTable.countOpen(owner) >= maxOpenJobs) throw new TrainingError("too_many_open_jobs", { limit: maxOpenJobs });
    const bytes = modelTable.bytesOf(owner);
    if (bytes >= limit) throw new TrainingError("too_many_bytes", { bytes, limit });
  }
}
