// Training jobs as clients see them. A job is accepted once its data is on disk and its row is committed; then it can
// be listed, watched and cancelled. job-runner.ts runs it.

import { randomUUID } from "node:crypto";
import { CommitUnknown } from "../../errors/faults.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import { isFinal, type JobRecord, type JobStatus, rowBytes } from "../../store/tables/jobs.ts";
import type { Owner } from "../../store/tables/models.ts";
import type { Tables } from "../../store/tables/tables.ts";
import type { Reservation } from "../account.ts";
import type { RlConfig, SftConfig } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import { type CurveQuery, type Curves, readJobCurves } from "../curves.ts";
import type { RecordReader } from "../records/record-reader.ts";
import { SentWriter } from "../records/sent-record.ts";
import { expectedStepBytes } from "../steps/step-upkeep.ts";
import { TrainingError } from "../training-error.ts";
import { InputWriter } from "./job-input.ts";
import type { JobJournal, WatchJob } from "./job-journal.ts";
import type { JobRunner } from "./job-runner.ts";
import { klReferenceStep } from "./job-work.ts";

/** Data of a job that is still arriving. */
export interface JobDraft {
  id: string;
  input: InputWriter;
  /** The file that `input` writes. */
  path: string;
  /** Keeps what the client sends; null = not kept. */
  record: SentWriter | null;
  /** For what is on disk, and later for what the job will leave. */
  room: Reservation;
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

  /** `recorded`: whether what is sent can be read later, if this server keeps any. */
  async draft(owner: string, { recorded = false } = {}): Promise<JobDraft> {
    const { workspace, records, account } = this.#context;
    // a job that is accepted must be able to end
    if (!workspace.keepReserve()) throw new TrainingError("storage_full", {});
    const id = randomUUID();
    const room = account.open(owner);
    try {
      workspace.createJobFolder(id);
      const path = workspace.jobInput(id);
      const record = recorded && records.keeps ? await SentWriter.create(workspace.jobSent(id), room.take) : null;
      return { id, path, input: await InputWriter.create(path, room.take), record, room };
    } catch (error) {
      await workspace.removeJob(id);
      throw error;
    }
  }

  /** The data is complete. Every server can read it when this returns. */
  async share({ id }: JobDraft): Promise<void> {
    await this.#context.workspace.shareInput(id, {});
  }

  /** What cannot be removed now is cleared away later. */
  async discard({ id, input, record, room }: JobDraft, modelId?: string): Promise<void> {
    const { workspace, records, log } = this.#context;
    await input.abandon();
    await record?.abandon();
    try {
      await workspace.removeJob(id);
      if (record && modelId !== undefined) await records.remove({ id, modelId });
    } catch (error) {
      log.warn("the data of a job that was not accepted is still there", { job: id, error });
    }
    await room.release();
  }

  /** Accepts the job. Once this returns, the job will run or end with a reason, even if the process crashes. */
  async submit(draft: JobDraft, submission: Submission): Promise<JobRecord> {
    const { job, created } = await this.#insert(draft, submission);
    if (created) {
      await this.#runner.wake();
      await this.#journal.countJobs();
      return job;
    }
    await this.discard(draft, submission.modelId);
    if (job.requestHash !== submission.requestHash) throw new TrainingError("idempotency_key_reused", {});
    return job;
  }

  /** The new job, or the one that has its idempotency key. */
  async #insert(draft: JobDraft, submission: Submission): Promise<{ job: JobRecord; created: boolean }> {
    const { owner, modelId, idempotencyKey, requestHash, spec } = submission;
    const config = JSON.stringify(spec.config);
    try {
      await draft.input.finish();
      await draft.record?.finish();
      const model = await this.#context.modelTable.owned(modelId, owner);
      if (!model) throw new TrainingError("unknown_model", { id: modelId });
      const openBytes = draft.input.bytes + (await expectedStepBytes(this.#context, model));
      const recordBytes = draft.record?.bytes ?? 0;
      await draft.room.setTo(openBytes + recordBytes + rowBytes(config));
      await this.share(draft);
      await this.#keep(draft, modelId);
      const insert = async (tx: Tables) => {
        const known = idempotencyKey === null ? null : await tx.jobTable.byIdempotencyKey(owner, idempotencyKey);
        if (known) return { job: known, created: false };
        // it may have been deleted while the data arrived
        if (!(await tx.modelTable.owned(modelId, owner))) throw new TrainingError("unknown_model", { id: modelId });
        await this.assertFewJobs(owner, tx);
        if (spec.kind === "rl") await this.checkReference(modelId, spec.config, tx);
        const row = { id: draft.id, modelId, owner, kind: spec.kind, config, idempotencyKey, requestHash };
        await draft.room.releaseIn(tx);
        return { job: await tx.jobTable.insert({ ...row, openBytes, recordBytes }), created: true };
      };
      const accepted = await this.#context.transaction(insert);
      if (accepted.created) draft.room.settle();
      return accepted;
    } catch (error) {
      // a job that may have been accepted keeps its data
      if (error instanceof CommitUnknown) draft.room.settle();
      else await this.discard(draft, modelId);
      throw error;
    }
  }

  async #keep({ id, record }: JobDraft, modelId: string): Promise<void> {
    if (!record) return;
    await this.#context.records.publish(this.#context.workspace.jobSent(id), "sent", { id, modelId });
  }

  /** Throws if a job submitted now would have no reference for its KL penalty. */
  async checkReference(modelId: string, config: RlConfig, tables: Tables = this.#context): Promise<void> {
    const { modelTable, jobTable } = tables;
    const newest = (await modelTable.newestStep(modelId))?.step ?? 0;
    await klReferenceStep(config, modelId, newest + (await jobTable.countOpenOf(modelId)), modelTable);
  }

  /** What the job was given and what became of it. Whoever opens it closes it. */
  openRecord(job: JobRecord): Promise<RecordReader> {
    return this.#context.records.open(job);
  }

  /** What the trainer computed for `count` tokens; null if it kept nothing. */
  tokenRows(job: JobRecord, from: number, count: number): Promise<Float32Array | null> {
    return this.#context.records.tokenRows(job, from, count);
  }

  /** What its gradient steps measured. */
  async curves(id: string, owner: Owner, query: Omit<CurveQuery, "x">): Promise<Curves> {
    return readJobCurves(this.#context, (await this.owned(id, owner)).id, query);
  }

  async owned(id: string, owner: Owner): Promise<JobRecord> {
    const job = await this.#context.jobTable.owned(id, owner);
    if (!job) throw new TrainingError("unknown_job", { id });
    return job;
  }

  list(
    owner: Owner,
    modelId: string | null,
    status: JobStatus | null,
    after: string | null,
    limit: number,
  ): Promise<JobRecord[]> {
    return this.#context.jobTable.list(owner, modelId, status, after, limit);
  }

  /** A job that is over stays as it is. A running one ends soon after, on whichever server it runs. */
  async cancel(id: string, owner: Owner): Promise<JobRecord> {
    const job = await this.owned(id, owner);
    if (isFinal(job.status)) return job;
    await this.stop(id);
    return this.owned(id, owner);
  }

  /** Cancels a job or operation that is not over. Returns the status that it had; null = it is gone. */
  async stop(id: string): Promise<JobStatus | null> {
    const { workspace } = this.#context;
    const status = await workspace.makingRoom(() => this.#journal.cancel(id, "cancelled before it started"));
    if (status === "RUNNING") await this.#runner.cancel(id, "cancelled");
    return status;
  }

  /** Oldest first. `after`: id of an event of this job, exclusive. */
  async events(id: string, after: string | null, limit: number): Promise<JobEvent[]> {
    const { jobTable, eventTable } = this.#context;
    const events = await eventTable.list(id, after, limit);
    if (events && events.length > 0) return events;
    // last, because a job may be deleted at any time
    if (!(await jobTable.has(id))) throw new TrainingError("unknown_job", { id });
    if (!events) throw new TrainingError("unknown_event", { id: after! });
    return events;
  }

  /** Calls `listener` when there may be new events, until the returned function is called. */
  watch(id: string, listener: WatchJob): () => void {
    return this.#journal.watch(id, listener);
  }

  /** Throws if the owner may not add another job now. */
  async assertFewJobs(owner: string, { jobTable }: Tables): Promise<void> {
    const { maxOpenJobs } = this.#context.settings;
    const open = await jobTable.countOpen(owner);
    if (open >= maxOpenJobs) throw new TrainingError("too_many_open_jobs", { limit: maxOpenJobs });
  }
}
