// The rows of training runs, and what their operations have in common. The operations themselves are rows of jobs: they
// wait, run, end and survive crashes in the same way.

import type { Statements } from "../store.ts";
import { type JobRecord, OPERATION_KINDS, readJobs, resultBytes } from "./jobs.ts";

export interface RunRecord {
  /** The id of the run is that of its model. */
  modelId: string;
  owner: string;
  /** The request that made the run. */
  requestId: string;
  name: string | null;
  /** JSON, as the client sent it. */
  spec: string;
  closed: boolean;
}

const OPERATIONS = OPERATION_KINDS.map((kind) => `'${kind}'`).join(", ");

export class RunTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  async insert({ modelId, owner, requestId, name, spec }: Omit<RunRecord, "closed">): Promise<void> {
    const sql = "INSERT INTO runs (model_id, owner, request_id, name, spec) VALUES (?1, ?2, ?3, ?4, ?5)";
    await this.#sql.run(sql, modelId, owner, requestId, name, spec);
  }

  owned(id: string, owner: string): Promise<RunRecord | null> {
    return this.#one("model_id = ?1 AND owner = ?2", id, owner);
  }

  named(owner: string, name: string): Promise<RunRecord | null> {
    return this.#one("owner = ?1 AND name = ?2", owner, name);
  }

  byRequest(owner: string, requestId: string): Promise<RunRecord | null> {
    return this.#one("owner = ?1 AND request_id = ?2", owner, requestId);
  }

  async setClosed(id: string, closed: boolean): Promise<void> {
    await this.#sql.run("UPDATE runs SET closed = ?1 WHERE model_id = ?2", closed ? 1 : 0, id);
  }

  async operation(runId: string, id: string): Promise<JobRecord | null> {
    const rest = `WHERE model_id = ?1 AND id = ?2 AND kind IN (${OPERATIONS})`;
    return (await readJobs(this.#sql, rest, runId, id))[0] ?? null;
  }

  async countOperations(runId: string): Promise<number> {
    const sql = `SELECT CAST(COUNT(*) AS BIGINT) AS count FROM jobs WHERE model_id = ?1 AND kind IN (${OPERATIONS})`;
    return (await this.#sql.get<{ count: number }>(sql, runId))!.count;
  }

  /** Open operations that will each make a new step. */
  async countOpenTransitions(runId: string): Promise<number> {
    const sql = `SELECT CAST(COUNT(*) AS BIGINT) AS count FROM jobs
      WHERE model_id = ?1 AND kind IN ('optim_step', 'load_state') AND status IN ('PENDING', 'RUNNING')`;
    return (await this.#sql.get<{ count: number }>(sql, runId))!.count;
  }

  /** The forward_backward operations whose gradients wait for the next optim_step, oldest first. */
  contributions(runId: string): Promise<JobRecord[]> {
    const rest = `WHERE model_id = ?1 AND kind = 'forward_backward' AND status = 'COMPLETED' AND to_step IS NULL
      AND cancel_requested = 0 ORDER BY seq`;
    return readJobs(this.#sql, rest, runId);
  }

  /** The operations whose gradients are kept: also those that a cancel has dropped while another operation ran. */
  async keptGradients(runId: string): Promise<string[]> {
    const sql = "SELECT id FROM jobs WHERE model_id = ?1 AND gradient_bytes > 0";
    return (await this.#sql.all<{ id: string }>(sql, runId)).map(({ id }) => id);
  }

  /** The ids of all operations whose gradients are kept, or may be in the making. */
  async gradients(): Promise<Set<string>> {
    const sql = `SELECT id FROM jobs WHERE gradient_bytes > 0
      OR (kind = 'forward_backward' AND status IN ('PENDING', 'RUNNING'))
      OR (kind = 'forward_backward' AND status = 'COMPLETED' AND to_step IS NULL)`;
    return new Set((await this.#sql.all<{ id: string }>(sql)).map(({ id }) => id));
  }

  /** The gradients of an operation are kept from now on; 0 = they go. */
  async setGradientBytes(operationId: string, bytes: number): Promise<void> {
    await this.#sql.run("UPDATE jobs SET gradient_bytes = ?2 WHERE id = ?1", operationId, bytes);
  }

  /** Of all operations of a run. */
  async gradientBytes(runId: string): Promise<number> {
    const sql = "SELECT CAST(COALESCE(SUM(gradient_bytes), 0) AS BIGINT) AS bytes FROM jobs WHERE model_id = ?1";
    return (await this.#sql.get<{ bytes: number }>(sql, runId))!.bytes;
  }

  /** Marks the waiting gradients as used (or dropped) by this step. */
  async consumeContributions(runId: string, step: number): Promise<void> {
    const sql = `UPDATE jobs SET to_step = ?1, gradient_bytes = 0 WHERE model_id = ?2 AND kind = 'forward_backward' AND status = 'COMPLETED'
      AND to_step IS NULL`;
    await this.#sql.run(sql, step, runId);
  }

  async dropResult(operationId: string): Promise<void> {
    await this.#sql.run(
      `UPDATE jobs SET report = NULL, result_bytes = ${resultBytes("NULL")} WHERE id = ?1`,
      operationId,
    );
  }

  async #one(where: string, ...values: string[]): Promise<RunRecord | null> {
    type Row = Omit<RunRecord, "closed"> & { closed: number };
    const columns = `model_id AS "modelId", owner, request_id AS "requestId", name, spec, closed`;
    const row = await this.#sql.get<Row>(`SELECT ${columns} FROM runs WHERE ${where}`, ...values);
    return row ? { ...row, closed: row.closed === 1 } : null;
  }
}
