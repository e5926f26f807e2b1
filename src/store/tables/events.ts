// Events of jobs and curves of policies.
import { randomUUID } from "node:crypto";
import type { Statements } from "../store.ts";

// The events of training jobs, in order of insertion. Events are never changed, and are deleted with their job.

export interface JobEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
  createdAt: string;
}

export class EventTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  async add(jobId: string, type: string, data: Record<string, unknown>, id: string = randomUUID()): Promise<JobEvent> {
    const event = { id, type, data, createdAt: new Date().toISOString() };
    await this.#sql.run(
      "INSERT INTO job_events (id, job_id, type, data, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
      ...[event.id, jobId, type, JSON.stringify(data), event.createdAt],
    );
    return event;
  }

  /** Oldest first. `after`: id of the last event seen. Returns null when the job has no such event. */
  async list(jobId: string, after: string | null, limit: number): Promise<JobEvent[] | null> {
    const seen = after === null ? 0 : await this.#seqOf(jobId, after);
    if (seen === null) return null;
    const sql = `SELECT id, type, data, created_at AS "createdAt" FROM job_events WHERE job_id = ?1 AND seq > ?2
      ORDER BY seq LIMIT ?3`;
    const rows = await this.#sql.all<Omit<JobEvent, "data"> & { data: string }>(sql, jobId, seen, limit);
    return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
  }

  async get(id: string): Promise<JobEvent | null> {
    const sql = `SELECT id, type, data, created_at AS "createdAt" FROM job_events WHERE id = ?1`;
    const row = await this.#sql.get<Omit<JobEvent, "data"> & { data: string }>(sql, id);
    return row ? { ...row, data: JSON.parse(row.data) } : null;
  }

  async count(jobId: string, type: string): Promise<number> {
    const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM job_events WHERE job_id = ?1 AND type = ?2";
    return (await this.#sql.get<{ count: number }>(sql, jobId, type))!.count;
  }

  async #seqOf(jobId: string, id: string): Promise<number | null> {
    const sql = "SELECT seq FROM job_events WHERE id = ?1 AND job_id = ?2";
    return (await this.#sql.get<{ seq: number }>(sql, id, jobId))?.seq ?? null;
  }
}

// The gradient steps of a job, or of all jobs of a model, in order.

/** Jobs of a model that failed made no step, so theirs are left out. */
export type CurveOf = { modelId: string } | { jobId: string };

export interface CurvePoint {
  /** Place among all events; grows along the curve. */
  seq: number;
  /** The step that its job made, or will make. */
  step: number;
  metrics: Record<string, number>;
}

const OF_MODEL = "jobs.model_id = ?1 AND kind IN ('rl', 'sft') AND status IN ('COMPLETED', 'RUNNING')";

/** The rows of `idOf`, which is ?1. */
function pointsOf(of: CurveOf): string {
  return `FROM job_events JOIN jobs ON jobs.id = job_id
    WHERE type = 'gradient_step' AND ${"jobId" in of ? "job_id = ?1" : OF_MODEL}`;
}

function idOf(of: CurveOf): string {
  return "jobId" in of ? of.jobId : of.modelId;
}

export class CurveTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** `after`: `seq` of the last one seen. */
  async points(of: CurveOf, after: number, limit: number): Promise<CurvePoint[]> {
    const rows = await this.#sql.all<{ seq: number; step: number; data: string }>(
      `SELECT job_events.seq AS seq, COALESCE(to_step, from_step + 1) AS step, data ${pointsOf(of)} AND job_events.seq > ?2
       ORDER BY job_events.seq LIMIT ?3`,
      ...[idOf(of), after, limit],
    );
    return rows.map(({ data, ...row }) => ({ ...row, metrics: JSON.parse(data) as Record<string, number> }));
  }

  /** The number of gradient steps up to this one. */
  async countUpTo(of: CurveOf, seq: number): Promise<number> {
    const sql = `SELECT CAST(COUNT(*) AS BIGINT) AS count ${pointsOf(of)} AND job_events.seq <= ?2`;
    return (await this.#sql.get<{ count: number }>(sql, idOf(of), seq))!.count;
  }
}
