// Who runs which job. A server that claims a job gets a lease: the right to run it for a while, by the clock of the
// database, which only the holder can extend. Each claim has a higher epoch, and whatever a holder writes carries it.
// So a server that was paused past its lease changes nothing any more once another one has taken the job over.
import { DATABASE_NOW, type SqlValue, type Statements } from "../store.ts";
import type { EventTable, JobEvent } from "./events.ts";
import { JOB_COLUMNS, type JobEnd, type JobRecord, type JobRow, jobOf, plainText, resultBytes } from "./jobs.ts";

/** The right to run a job. */
export interface Lease {
  readonly jobId: string;
  /** Number of the claim. */
  readonly epoch: number;
  /** How long a renewed lease lasts. */
  readonly ms: number;
}

export interface ClaimedJob {
  job: JobRecord;
  lease: Lease;
}

/** The job runs elsewhere, waits again, is over or is gone. Whoever gets this stops and says nothing to clients. */
export class LostLease extends Error {
  constructor({ jobId, epoch }: Lease) {
    super(`the lease ${epoch} of training job ${jobId} is lost`);
    this.name = "LostLease";
  }
}

/** A row from before there were leases has none. */
const EXPIRED = `status = 'RUNNING' AND (lease_until IS NULL OR lease_until < ${DATABASE_NOW})`;

type LeasedRow = JobRow & { epoch: number };

export class LeaseTable {
  readonly #sql: Statements;
  readonly #events: EventTable;

  constructor(sql: Statements, events: EventTable) {
    this.#sql = sql;
    this.#events = events;
  }

  /**
   * Marks the oldest waiting job RUNNING whose model has no older open job, and returns it with its lease. null = there
   * is none. One statement: of servers that claim at once, each gets another job. Not for a transaction. A claim that
   * fails with CommitUnknown may have claimed a job: it is among those held by the worker.
   */
  async claim(worker: string, ms: number): Promise<ClaimedJob | null> {
    // the models of running jobs are few and read once, so hundreds of jobs that wait for one cost little
    const sql = `UPDATE jobs SET status = 'RUNNING', worker = ?1, lease_until = ${DATABASE_NOW} + ?2, epoch = epoch + 1,
        attempts = attempts + 1, updated_at = ?3
      WHERE seq = (
        SELECT seq FROM jobs AS next WHERE status = 'PENDING'
          AND model_id NOT IN (SELECT model_id FROM jobs WHERE status = 'RUNNING')
          AND NOT EXISTS (SELECT 1 FROM jobs AS older WHERE older.model_id = next.model_id AND older.seq < next.seq
            AND older.status IN ('PENDING', 'RUNNING'))
          ORDER BY seq LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING ${JOB_COLUMNS}, epoch`;
    const [row] = await this.#sql.all<LeasedRow>(sql, worker, ms, new Date().toISOString());
    return row ? claimed(row, ms) : null;
  }

  /** Extends the lease. */
  async renew(lease: Lease): Promise<{ cancelRequested: boolean }> {
    const sql = `UPDATE jobs SET lease_until = ${DATABASE_NOW} + ?3 WHERE id = ?1 AND epoch = ?2 AND status = 'RUNNING'
      RETURNING cancel_requested AS "cancelRequested"`;
    const [row] = await this.#sql.all<{ cancelRequested: number }>(sql, lease.jobId, lease.epoch, lease.ms);
    if (!row) throw new LostLease(lease);
    return { cancelRequested: row.cancelRequested === 1 };
  }

  /** The job begins to train from this step. */
  async start(lease: Lease, fromStep: number): Promise<void> {
    const set = "from_step = ?4, progress = 0, training_start = COALESCE(training_start, ?5), updated_at = ?5";
    await this.#write(lease, set, fromStep, new Date().toISOString());
  }

  /** All of it but the number of gradient steps is JSON. */
  async setReport(lease: Lease, report: string, totals: string, gradientSteps: number): Promise<void> {
    const set = `report = ?4, totals = ?5, gradient_steps = ?6, result_bytes = ${resultBytes("?4", "CAST(?6 AS BIGINT)")}`;
    await this.#write(lease, set, report, totals, gradientSteps);
  }

  async setProgress(lease: Lease, progress: number): Promise<void> {
    await this.#write(lease, "progress = ?4, updated_at = ?5", progress, new Date().toISOString());
  }

  /** Adds an event while the lease holds. Must run in a transaction. */
  async addEvent(lease: Lease, type: string, data: Record<string, unknown>, id?: string): Promise<JobEvent> {
    await this.renew(lease);
    return this.#events.add(lease.jobId, type, data, id);
  }

  /** Gives the job back to the queue, with its events. `attempted`: whether the attempt counts. */
  async requeue(lease: Lease, attempted: boolean): Promise<void> {
    const sql = `UPDATE jobs SET status = 'PENDING', worker = NULL, lease_until = NULL, attempts = attempts - ?3,
      updated_at = ?4 WHERE id = ?1 AND epoch = ?2 AND status = 'RUNNING'`;
    const now = new Date().toISOString();
    const changed = await this.#sql.run(sql, lease.jobId, lease.epoch, attempted ? 0 : 1, now);
    if (changed === 0) throw new LostLease(lease);
  }

  /** Records the final status and its event. Must run in a transaction, with whatever becomes visible with it. */
  async finish(lease: Lease, end: JobEnd, eventId?: string): Promise<JobEvent> {
    const sql = `UPDATE jobs SET status = ?3, worker = NULL, lease_until = NULL, error_message = ?4, to_step = ?5,
        report = COALESCE(?6, report), result_bytes = ${resultBytes("COALESCE(?6, report)")}, reward_std_dev = ?7, training_end = ?8, updated_at = ?8,
        progress = CASE WHEN CAST(?3 AS TEXT) = 'COMPLETED' THEN 1 ELSE progress END
      WHERE id = ?1 AND epoch = ?2 AND status = 'RUNNING'`;
    const { status, errorMessage, toStep, report, rewardStdDev, event } = end;
    const values = [status, plainText(errorMessage), toStep, report, rewardStdDev, new Date().toISOString()];
    if ((await this.#sql.run(sql, lease.jobId, lease.epoch, ...values)) === 0) throw new LostLease(lease);
    return this.#events.add(lease.jobId, event.type, event.data, eventId);
  }

  /** The jobs that a server has claimed, with their leases. */
  async heldBy(worker: string, ms: number): Promise<ClaimedJob[]> {
    const sql = `SELECT ${JOB_COLUMNS}, epoch FROM jobs WHERE status = 'RUNNING' AND worker = ?1 ORDER BY seq`;
    return (await this.#sql.all<LeasedRow>(sql, worker)).map((row) => claimed(row, ms));
  }

  /** The running jobs with their leases. `expired`: only those whose holder has not renewed in time. */
  async running({ expired }: { expired: boolean }): Promise<ClaimedJob[]> {
    const where = expired ? EXPIRED : "status = 'RUNNING'";
    const sql = `SELECT ${JOB_COLUMNS}, epoch FROM jobs WHERE ${where} ORDER BY seq`;
    return (await this.#sql.all<LeasedRow>(sql)).map((row) => claimed(row, 0));
  }

  /** The lease that a job runs under; null = it does not run. */
  async of(jobId: string): Promise<Lease | null> {
    const sql = "SELECT epoch FROM jobs WHERE id = ?1 AND status = 'RUNNING'";
    const row = await this.#sql.get<{ epoch: number }>(sql, jobId);
    return row ? { jobId, epoch: row.epoch, ms: 0 } : null;
  }

  /** Throws LostLease unless this lease has expired and nobody took the job over. In a transaction it stays so. */
  async assertExpired(lease: Lease): Promise<void> {
    const sql = `SELECT 1 AS found FROM jobs WHERE id = ?1 AND epoch = ?2 AND ${EXPIRED}`;
    if (!(await this.#sql.get(sql, lease.jobId, lease.epoch))) throw new LostLease(lease);
  }

  /** Every write of a holder extends its lease. `set` has its values from ?4 on. */
  async #write({ jobId, epoch, ms }: Lease, set: string, ...values: SqlValue[]): Promise<void> {
    const sql = `UPDATE jobs SET ${set}, lease_until = ${DATABASE_NOW} + ?3 WHERE id = ?1 AND epoch = ?2 AND status = 'RUNNING'`;
    if ((await this.#sql.run(sql, jobId, epoch, ms, ...values)) === 0) throw new LostLease({ jobId, epoch, ms });
  }
}

function claimed({ epoch, ...row }: LeasedRow, ms: number): ClaimedJob {
  return { job: jobOf(row), lease: { jobId: row.id, epoch, ms } };
}
