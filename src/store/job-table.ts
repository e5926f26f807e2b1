// The rows of training jobs. A status changes only as job-state.ts allows. A final status and the event that announces
// it are committed together, so that no reader sees one without the other.

import type { SqlValue, Store } from "./db.ts";
import type { EventTable, JobEvent } from "./event-table.ts";
import { type JobStatus, transition } from "./job-state.ts";

/** The operations of a run. */
export const OPERATION_KINDS = [
  "forward",
  "forward_backward",
  "optim_step",
  "save_weights_for_sampler",
  "save_state",
  "load_state",
] as const;

export type OperationKind = (typeof OPERATION_KINDS)[number];

export function isOperation(kind: JobRecord["kind"]): kind is OperationKind {
  return (OPERATION_KINDS as readonly string[]).includes(kind);
}

export interface JobRecord {
  id: string;
  modelId: string;
  owner: string;
  /** A whole job, or an operation of a run. */
  kind: "rl" | "sft" | OperationKind;
  status: JobStatus;
  /** 0 to 1; null before the job runs. */
  progress: number | null;
  errorMessage: string | null;
  /** JSON of RlConfig or SftConfig, or of the Operation. */
  config: string;
  /** Number of starts; more than 1 after crashes of the server. */
  attempts: number;
  cancelRequested: boolean;
  fromStep: number | null;
  toStep: number | null;
  /** JSON of the JobReport, or of an operation's outcome; null until known. */
  report: string | null;
  idempotencyKey: string | null;
  requestHash: string | null;
  trainingStart: string | null;
  trainingEnd: string | null;
  createdAt: string;
  updatedAt: string;
}

export type NewJob = Pick<JobRecord, "id" | "modelId" | "owner" | "kind" | "config" | "idempotencyKey" | "requestHash">;

export interface JobEnd {
  status: "COMPLETED" | "FAILED" | "CANCELLED";
  errorMessage: string | null;
  toStep: number | null;
  report: string | null;
  /** Mean standard deviation of rewards within its groups; null = no rewards to compare. */
  rewardStdDev: number | null;
  /** Tokens that went through the trainer. Stored only as part of the report. */
  tokens: number;
  event: { type: string; data: Record<string, unknown> };
}

/** The columns of a job under the names of JobRecord. */
const COLUMNS = `id, model_id AS modelId, owner, kind, status, progress, error_message AS errorMessage, config, attempts,
  cancel_requested AS cancelRequested, from_step AS fromStep, to_step AS toStep, report, idempotency_key AS idempotencyKey,
  request_hash AS requestHash, training_start AS trainingStart, training_end AS trainingEnd, created_at AS createdAt,
  updated_at AS updatedAt`;

export class JobTable {
  readonly #store: Store;
  readonly #events: EventTable;

  constructor(store: Store, events: EventTable) {
    this.#store = store;
    this.#events = events;
  }

  insert(job: NewJob): JobRecord {
    const now = new Date().toISOString();
    this.#store.run(
      `INSERT INTO jobs (id, model_id, owner, kind, status, config, idempotency_key, request_hash, created_at, updated_at)
       VALUES (?, ?, ?, ?, 'PENDING', ?, ?, ?, ?, ?)`,
      ...[job.id, job.modelId, job.owner, job.kind, job.config, job.idempotencyKey, job.requestHash, now, now],
    );
    return this.get(job.id)!;
  }

  get(id: string): JobRecord | null {
    return this.#job("WHERE id = ?", id);
  }

  has(id: string): boolean {
    return this.#store.get("SELECT 1 FROM jobs WHERE id = ?", id) !== undefined;
  }

  /** A whole job. */
  owned(id: string, owner: string): JobRecord | null {
    return this.#job("WHERE id = ? AND owner = ? AND kind IN ('rl', 'sft')", id, owner);
  }

  byIdempotencyKey(owner: string, key: string): JobRecord | null {
    return this.#job("WHERE owner = ? AND idempotency_key = ?", owner, key);
  }

  /** Whole jobs, newest first. `after`: id of the last one seen. */
  list(
    owner: string,
    modelId: string | null,
    status: JobStatus | null,
    after: string | null,
    limit: number,
  ): JobRecord[] {
    return this.#jobs(
      `WHERE owner = ?1 AND kind IN ('rl', 'sft') AND (?2 IS NULL OR model_id = ?2)
         AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR seq < (SELECT seq FROM jobs WHERE id = ?4))
       ORDER BY seq DESC LIMIT ?5`,
      ...[owner, modelId, status, after, limit],
    );
  }

  withStatus(status: JobStatus): JobRecord[] {
    return this.#jobs("WHERE status = ? ORDER BY seq", status);
  }

  /** Pending and running jobs of a model, oldest first. */
  openOf(modelId: string): JobRecord[] {
    return this.#jobs("WHERE model_id = ? AND status IN ('PENDING', 'RUNNING') ORDER BY seq", modelId);
  }

  countOpenOf(modelId: string): number {
    const sql = "SELECT COUNT(*) AS count FROM jobs WHERE model_id = ? AND status IN ('PENDING', 'RUNNING')";
    return this.#store.get<{ count: number }>(sql, modelId)!.count;
  }

  /** The step that a model's first job trained from: 0, or the first step of a fork. null before any job ran. */
  firstStepOf(modelId: string): number | null {
    const sql = "SELECT MIN(from_step) AS step FROM jobs WHERE model_id = ?";
    return this.#store.get<{ step: number | null }>(sql, modelId)?.step ?? null;
  }

  /** The reward spreads of a model's completed jobs in order, each with the step that earned the rewards. */
  rewardSpreads(modelId: string): { step: number; rewardStdDev: number }[] {
    return this.#store.all<{ step: number; rewardStdDev: number }>(
      `SELECT from_step AS step, reward_std_dev AS rewardStdDev FROM jobs
       WHERE model_id = ? AND status = 'COMPLETED' AND from_step IS NOT NULL AND reward_std_dev IS NOT NULL ORDER BY seq`,
      modelId,
    );
  }

  /** Deletes all jobs of a model with their events. */
  deleteOf(modelId: string): void {
    this.#store.run("DELETE FROM jobs WHERE model_id = ?", modelId);
  }

  count(status: JobStatus): number {
    return this.#store.get<{ count: number }>("SELECT COUNT(*) AS count FROM jobs WHERE status = ?", status)!.count;
  }

  countOpen(owner: string): number {
    const sql = "SELECT COUNT(*) AS count FROM jobs WHERE owner = ? AND status IN ('PENDING', 'RUNNING')";
    return this.#store.get<{ count: number }>(sql, owner)!.count;
  }

  /** The oldest waiting job whose model has no running job. `taken`: ids of jobs that are about to run. */
  nextRunnable(taken: ReadonlySet<string>): JobRecord | null {
    return this.#job(
      `WHERE status = 'PENDING' AND model_id NOT IN (
         SELECT model_id FROM jobs WHERE status = 'RUNNING' OR id IN (SELECT value FROM json_each(?)))
       ORDER BY seq LIMIT 1`,
      JSON.stringify([...taken]),
    );
  }

  start(id: string, fromStep: number): void {
    const sql = `UPDATE jobs SET from_step = ?, attempts = attempts + 1, progress = 0,
      training_start = COALESCE(training_start, ?) WHERE id = ?`;
    this.#store.relaxed(() =>
      this.#change(id, "RUNNING", () => this.#store.run(sql, fromStep, new Date().toISOString(), id)),
    );
  }

  /** Puts a running job back in the queue, with its events. `attempted`: whether the attempt counts. */
  requeue(id: string, attempted: boolean): void {
    this.#change(id, "PENDING", () => {
      if (!attempted) this.#store.run("UPDATE jobs SET attempts = attempts - 1 WHERE id = ?", id);
    });
  }

  requestCancel(id: string): void {
    this.#store.run("UPDATE jobs SET cancel_requested = 1 WHERE id = ?", id);
  }

  setReport(id: string, report: string): void {
    this.#store.relaxed(() => this.#store.run("UPDATE jobs SET report = ? WHERE id = ?", report, id));
  }

  setProgress(id: string, progress: number): void {
    const sql = "UPDATE jobs SET progress = ?, updated_at = ? WHERE id = ?";
    this.#store.relaxed(() => this.#store.run(sql, progress, new Date().toISOString(), id));
  }

  /** Commits the final status, its event and `alongside` (such as a published step) in one transaction. */
  finish(id: string, end: JobEnd, alongside: () => void = () => {}): JobEvent {
    let event: JobEvent | undefined;
    this.#change(id, end.status, () => {
      alongside();
      this.#store.run(
        `UPDATE jobs SET error_message = ?, to_step = ?, report = COALESCE(?, report), reward_std_dev = ?, training_end = ?,
           progress = CASE WHEN ? = 'COMPLETED' THEN 1 ELSE progress END WHERE id = ?`,
        ...[end.errorMessage, end.toStep, end.report, end.rewardStdDev, new Date().toISOString(), end.status, id],
      );
      event = this.#events.add(id, end.event.type, end.event.data);
    });
    return event!;
  }

  #jobs(rest: string, ...params: SqlValue[]): JobRecord[] {
    return readJobs(this.#store, rest, ...params);
  }

  #job(rest: string, ...params: SqlValue[]): JobRecord | null {
    return this.#jobs(rest, ...params)[0] ?? null;
  }

  #change(id: string, to: JobStatus, work: () => void): void {
    this.#store.transaction(() => {
      const job = this.get(id);
      if (!job) throw new Error(`there is no job ${id}`);
      const status = transition(job.status, to);
      this.#store.run("UPDATE jobs SET status = ?, updated_at = ? WHERE id = ?", status, new Date().toISOString(), id);
      work();
    });
  }
}

/** The jobs that the rest of a query selects. */
export function readJobs(store: Store, rest: string, ...params: SqlValue[]): JobRecord[] {
  type Row = Omit<JobRecord, "cancelRequested"> & { cancelRequested: number };
  const rows = store.all<Row>(`SELECT ${COLUMNS} FROM jobs ${rest}`, ...params);
  return rows.map((row) => ({ ...row, cancelRequested: row.cancelRequested === 1 }));
}
