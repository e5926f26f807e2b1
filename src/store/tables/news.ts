// What happened since a moment, over all jobs, steps and models: the rows behind one stream of news. Times are those of
// the servers that wrote the rows. Numbers are given before a transaction commits, so a row with a lower one may appear
// after a row with a higher one; whoever reads on looks a little further back.

import type { SqlValue, Statements } from "../store.ts";
import type { JobEvent } from "./events.ts";
import type { JobStatus } from "./jobs.ts";
import type { Owner } from "./models.ts";

export interface JobChange {
  seq: number;
  id: string;
  modelId: string;
  owner: string;
  status: JobStatus;
  progress: number | null;
  gradientSteps: number | null;
  updatedAt: string;
}

export interface NewEvent {
  seq: number;
  jobId: string;
  owner: string;
  event: JobEvent;
}

export interface NewStep {
  id: string;
  modelId: string;
  owner: string;
  step: number;
  metrics: Record<string, number>;
  createdAt: string;
}

export interface NewModel {
  seq: number;
  id: string;
  owner: string;
}

/** How long a deletion can be asked for. */
const DELETIONS_MS = 24 * 3600_000;

const JOB = `seq, id, model_id AS "modelId", owner, status, progress, gradient_steps AS "gradientSteps", updated_at AS "updatedAt"`;
const WHOLE = "kind IN ('rl', 'sft')";

export class NewsTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** The highest numbers given so far. */
  async heads(): Promise<{ events: number; jobs: number; models: number }> {
    const head = (table: string) => `(SELECT COALESCE(MAX(seq), 0) FROM ${table})`;
    const sql = `SELECT ${head("job_events")} AS events, ${head("jobs")} AS jobs, ${head("models")} AS models`;
    return (await this.#sql.get(sql))!;
  }

  /** Oldest first. `after`: number of the last one seen. */
  async events(after: number, owner: Owner, limit: number): Promise<NewEvent[]> {
    type Row = Omit<NewEvent, "event"> & Omit<JobEvent, "data"> & { data: string };
    const rows = await this.#sql.all<Row>(
      `SELECT job_events.seq AS seq, job_id AS "jobId", owner, job_events.id AS id, type, data,
         job_events.created_at AS "createdAt" FROM job_events JOIN jobs ON jobs.id = job_id
       WHERE job_events.seq > ?1 AND ${WHOLE} AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2) ORDER BY job_events.seq LIMIT ?3`,
      ...[after, owner, limit],
    );
    return rows.map(({ seq, jobId, owner, data, ...event }) => ({
      ...{ seq, jobId, owner },
      event: { ...event, data: JSON.parse(data) as Record<string, unknown> },
    }));
  }

  /** Jobs that run, those numbered above `after`, and those with these ids. */
  async jobs(after: number, ids: readonly string[]): Promise<JobChange[]> {
    const named = ids.map((_, i) => `?${i + 2}`).join(", ");
    // parts, because each has an index of its own
    const parts = [
      `SELECT ${JOB} FROM jobs WHERE ${WHOLE} AND status = 'RUNNING'`,
      `SELECT ${JOB} FROM jobs WHERE ${WHOLE} AND seq > ?1`,
      ...(ids.length === 0 ? [] : [`SELECT ${JOB} FROM jobs WHERE ${WHOLE} AND id IN (${named})`]),
    ];
    return this.#sql.all<JobChange>(`${parts.join(" UNION ")} ORDER BY 1`, after, ...ids);
  }

  /** Jobs of an owner that changed since then. */
  jobsSince(since: Date, owner: Owner, limit: number): Promise<JobChange[]> {
    const where = `${WHOLE} AND updated_at >= ?1 AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2)`;
    const sql = `SELECT ${JOB} FROM jobs WHERE ${where} ORDER BY seq LIMIT ?3`;
    return this.#sql.all(sql, since.toISOString(), owner, limit);
  }

  async steps(since: Date, owner: Owner, limit: number): Promise<NewStep[]> {
    const rows = await this.#sql.all<Omit<NewStep, "metrics"> & { metrics: string }>(
      `SELECT steps.id AS id, model_id AS "modelId", owner, step, metrics, steps.created_at AS "createdAt"
       FROM steps JOIN models ON models.id = model_id
       WHERE steps.created_at >= ?1 AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2) ORDER BY steps.created_at, step LIMIT ?3`,
      ...[since.toISOString(), owner, limit],
    );
    return rows.map((row) => ({ ...row, metrics: JSON.parse(row.metrics) as Record<string, number> }));
  }

  models(after: number): Promise<NewModel[]> {
    return this.#sql.all("SELECT seq, id, owner FROM models WHERE seq > ?1 ORDER BY seq", after);
  }

  deletedModels(since: Date, owner: Owner): Promise<{ id: string; owner: string }[]> {
    const values: SqlValue[] = [since.getTime(), owner];
    const sql = `SELECT id, owner FROM deleted_models
      WHERE deleted_at >= ?1 AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2) ORDER BY deleted_at, id`;
    return this.#sql.all(sql, ...values);
  }

  /** Must run in the transaction that deletes the model. */
  async modelDeleted({ id, owner }: { id: string; owner: string }, now: number): Promise<void> {
    await this.#sql.run("DELETE FROM deleted_models WHERE deleted_at < ?1", now - DELETIONS_MS);
    await this.#sql.run("INSERT INTO deleted_models (id, owner, deleted_at) VALUES (?1, ?2, ?3)", id, owner, now);
  }
}
