// The states of a training job: PENDING → RUNNING → COMPLETED, FAILED or CANCELLED. The last three are final. A job that
// waits may be cancelled; one whose server stopped or died while it was running goes back to PENDING.

import type { SqlValue, Statements } from "../store.ts";
import type { EventTable, JobEvent } from "./events.ts";
import type { Owner } from "./models.ts";

export const JOB_STATUSES = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export function isFinal(status: JobStatus): boolean {
  return status !== "PENDING" && status !== "RUNNING";
}

// The rows of training jobs, for whoever does not run them: leases.ts writes what a running job does. A final
// status and the event that announces it are committed together, so that no reader sees one without the other.

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
  /** JSON of JobTotals; null = not known yet, or from an older version. */
  totals: string | null;
  /** How many gradient steps it has in all; null like the totals. */
  gradientSteps: number | null;
  idempotencyKey: string | null;
  requestHash: string | null;
  trainingStart: string | null;
  trainingEnd: string | null;
  createdAt: string;
  updatedAt: string;
}

export type NewJob = Pick<
  JobRecord,
  "id" | "modelId" | "owner" | "kind" | "config" | "idempotencyKey" | "requestHash"
> &
  JobBytes;

/** What a job counts in the account of its workspace (accounts.ts). */
export interface JobBytes {
  /** Its data and what it will leave. They count while it is open. */
  openBytes: number;
  /** Its record. */
  recordBytes: number;
}

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
export const JOB_COLUMNS = `id, model_id AS "modelId", owner, kind, status, progress, error_message AS "errorMessage", config, attempts,
  cancel_requested AS "cancelRequested", from_step AS "fromStep", to_step AS "toStep", report, totals, gradient_steps AS "gradientSteps", idempotency_key AS "idempotencyKey",
  request_hash AS "requestHash", training_start AS "trainingStart", training_end AS "trainingEnd", created_at AS "createdAt",
  updated_at AS "updatedAt"`;

/** What a row takes, and what a gradient step leaves in events and curves, in bytes. */
const ROW_BYTES = 2048;

/** What the row of a new job takes. */
export function rowBytes(config: string): number {
  return ROW_BYTES + Buffer.byteLength(config);
}

/** What its report, and the events and curves of its gradient steps, add to that. */
export function reportBytes(report: string, gradientSteps: number): number {
  return Buffer.byteLength(report) + ROW_BYTES * gradientSteps;
}

/** What a job leaves in the database and in curves. `report`, `gradientSteps`: SQL. */
export function resultBytes(report: string, gradientSteps = "gradient_steps"): string {
  return `${ROW_BYTES} * (1 + COALESCE(${gradientSteps}, 0)) + OCTET_LENGTH(config) + COALESCE(OCTET_LENGTH(${report}), 0)`;
}

export class JobTable {
  readonly #sql: Statements;
  readonly #events: EventTable;

  constructor(sql: Statements, events: EventTable) {
    this.#sql = sql;
    this.#events = events;
  }

  async insert(job: NewJob): Promise<JobRecord> {
    const now = new Date().toISOString();
    await this.#sql.run(
      `INSERT INTO jobs (id, model_id, owner, kind, status, config, idempotency_key, request_hash, created_at, updated_at,
         open_bytes, record_bytes, result_bytes)
       VALUES (?1, ?2, ?3, ?4, 'PENDING', ?5, ?6, ?7, ?8, ?8, ?9, ?10, ${ROW_BYTES} + OCTET_LENGTH(?5))`,
      ...[job.id, job.modelId, job.owner, job.kind, job.config, job.idempotencyKey, job.requestHash, now],
      ...[job.openBytes, job.recordBytes],
    );
    return (await this.get(job.id))!;
  }

  get(id: string): Promise<JobRecord | null> {
    return this.#job("WHERE id = ?1", id);
  }

  async has(id: string): Promise<boolean> {
    return (await this.#sql.get("SELECT 1 AS found FROM jobs WHERE id = ?1", id)) !== undefined;
  }

  /** All whole jobs by id, whoever owns them, each with what its record counts. */
  async recorded(): Promise<Map<string, { owner: string; bytes: number }>> {
    const sql = "SELECT id, owner, record_bytes AS bytes FROM jobs WHERE kind IN ('rl', 'sft')";
    const rows = await this.#sql.all<{ id: string; owner: string; bytes: number }>(sql);
    return new Map(rows.map(({ id, ...rest }) => [id, rest]));
  }

  /** A file was added to the record of a job. */
  async addRecordBytes(id: string, bytes: number): Promise<void> {
    await this.#sql.run("UPDATE jobs SET record_bytes = record_bytes + ?2 WHERE id = ?1", id, bytes);
  }

  /** Corrects what the record of a job counts, unless that changed meanwhile. */
  async correctRecordBytes(id: string, from: number, to: number): Promise<void> {
    await this.#sql.run("UPDATE jobs SET record_bytes = ?3 WHERE id = ?1 AND record_bytes = ?2", id, from, to);
  }

  /** A whole job. */
  owned(id: string, owner: Owner): Promise<JobRecord | null> {
    const whole = "WHERE id = ?1 AND kind IN ('rl', 'sft')";
    return owner === null ? this.#job(whole, id) : this.#job(`${whole} AND owner = ?2`, id, owner);
  }

  byIdempotencyKey(owner: string, key: string): Promise<JobRecord | null> {
    return this.#job("WHERE owner = ?1 AND idempotency_key = ?2", owner, key);
  }

  /** Whole jobs, newest first. `after`: id of the last one seen. */
  list(
    owner: Owner,
    modelId: string | null,
    status: JobStatus | null,
    after: string | null,
    limit: number,
  ): Promise<JobRecord[]> {
    const values: SqlValue[] = [];
    // a filter that is not used would keep the database from using an index for the others
    const only = (value: string | null, condition: (parameter: string) => string) => {
      if (value === null) return "";
      values.push(value);
      return ` AND ${condition(`?${values.length}`)}`;
    };
    const where =
      "WHERE kind IN ('rl', 'sft')" +
      // a model has few of an owner's jobs: as an expression, the owner cannot tempt the database to read all of them
      only(owner, (id) => (modelId === null ? `owner = ${id}` : `owner || '' = ${id}`)) +
      only(modelId, (id) => `model_id = ${id}`) +
      only(status, (one) => `status = ${one}`) +
      only(after, (id) => `seq < (SELECT seq FROM jobs WHERE id = ${id})`);
    values.push(limit);
    return readJobs(this.#sql, `${where} ORDER BY seq DESC LIMIT ?${values.length}`, ...values);
  }

  withStatus(status: JobStatus): Promise<JobRecord[]> {
    return readJobs(this.#sql, "WHERE status = ?1 ORDER BY seq", status);
  }

  /** Pending and running jobs of a model, oldest first. */
  openOf(modelId: string): Promise<JobRecord[]> {
    return readJobs(this.#sql, "WHERE model_id = ?1 AND status IN ('PENDING', 'RUNNING') ORDER BY seq", modelId);
  }

  countOpenOf(modelId: string): Promise<number> {
    return this.#count("model_id = ?1 AND status IN ('PENDING', 'RUNNING')", modelId);
  }

  /** The step that a model's first job trained from: 0, or the first step of a fork. null before any job ran. */
  async firstStepOf(modelId: string): Promise<number | null> {
    const sql = "SELECT MIN(from_step) AS step FROM jobs WHERE model_id = ?1";
    return (await this.#sql.get<{ step: number | null }>(sql, modelId))?.step ?? null;
  }

  /** The reward spreads of a model's completed jobs in order, each with the step that earned the rewards. */
  rewardSpreads(modelId: string): Promise<{ step: number; rewardStdDev: number }[]> {
    return this.#sql.all<{ step: number; rewardStdDev: number }>(
      `SELECT from_step AS step, reward_std_dev AS "rewardStdDev" FROM jobs
       WHERE model_id = ?1 AND status = 'COMPLETED' AND from_step IS NOT NULL AND reward_std_dev IS NOT NULL ORDER BY seq`,
      modelId,
    );
  }

  /** Deletes all jobs of a model with their events. */
  async deleteOf(modelId: string): Promise<void> {
    await this.#sql.run("DELETE FROM jobs WHERE model_id = ?1", modelId);
  }

  count(status: JobStatus): Promise<number> {
    return this.#count("status = ?1", status);
  }

  countOpen(owner: string): Promise<number> {
    return this.#count("owner = ?1 AND status IN ('PENDING', 'RUNNING')", owner);
  }

  async requestCancel(id: string): Promise<void> {
    await this.#sql.run("UPDATE jobs SET cancel_requested = 1 WHERE id = ?1", id);
  }

  /** Ends a job that waits. null = it does not wait. Must run in a transaction. */
  async endWaiting(id: string, { status, errorMessage, event }: JobEnd): Promise<JobEvent | null> {
    const sql = `UPDATE jobs SET status = ?2, error_message = ?3, training_end = ?4, updated_at = ?4
      WHERE id = ?1 AND status = 'PENDING'`;
    if ((await this.#sql.run(sql, id, status, plainText(errorMessage), new Date().toISOString())) === 0) return null;
    return this.#events.add(id, event.type, event.data);
  }

  async #job(rest: string, ...params: SqlValue[]): Promise<JobRecord | null> {
    return (await readJobs(this.#sql, rest, ...params))[0] ?? null;
  }

  async #count(where: string, ...params: SqlValue[]): Promise<number> {
    const sql = `SELECT CAST(COUNT(*) AS BIGINT) AS count FROM jobs WHERE ${where}`;
    return (await this.#sql.get<{ count: number }>(sql, ...params))!.count;
  }
}

/** As the database has it. */
export type JobRow = Omit<JobRecord, "cancelRequested"> & { cancelRequested: number };

/** The jobs that the rest of a query selects. */
export async function readJobs(sql: Statements, rest: string, ...params: SqlValue[]): Promise<JobRecord[]> {
  return (await sql.all<JobRow>(`SELECT ${JOB_COLUMNS} FROM jobs ${rest}`, ...params)).map(jobOf);
}

/** Text for the database: PostgreSQL has none with U+0000. */
export function plainText(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "\uFFFD");
}

export function jobOf(row: JobRow): JobRecord {
  return { ...row, cancelRequested: row.cancelRequested === 1 };
}
