// The rows of training runs, and what their operations have in common. The operations themselves are rows of jobs: they
// wait, run, end and survive crashes in the same way.

import type { Store } from "./db.ts";
import { type JobRecord, OPERATION_KINDS, readJobs } from "./job-table.ts";

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
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  insert({ modelId, owner, requestId, name, spec }: Omit<RunRecord, "closed">): RunRecord {
    const sql = "INSERT INTO runs (model_id, owner, request_id, name, spec) VALUES (?, ?, ?, ?, ?)";
    this.#store.run(sql, modelId, owner, requestId, name, spec);
    return this.owned(modelId, owner)!;
  }

  owned(id: string, owner: string): RunRecord | null {
    return this.#one("model_id = ? AND owner = ?", id, owner);
  }

  named(owner: string, name: string): RunRecord | null {
    return this.#one("owner = ? AND name = ?", owner, name);
  }

  byRequest(owner: string, requestId: string): RunRecord | null {
    return this.#one("owner = ? AND request_id = ?", owner, requestId);
  }

  setClosed(id: string, closed: boolean): void {
    this.#store.run("UPDATE runs SET closed = ? WHERE model_id = ?", closed ? 1 : 0, id);
  }

  operation(runId: string, id: string): JobRecord | null {
    const rest = `WHERE model_id = ? AND id = ? AND kind IN (${OPERATIONS})`;
    return readJobs(this.#store, rest, runId, id)[0] ?? null;
  }

  countOperations(runId: string): number {
    const sql = `SELECT COUNT(*) AS count FROM jobs WHERE model_id = ? AND kind IN (${OPERATIONS})`;
    return this.#store.get<{ count: number }>(sql, runId)!.count;
  }

  /** Open operations that will each make a new step. */
  countOpenTransitions(runId: string): number {
    const sql = `SELECT COUNT(*) AS count FROM jobs
      WHERE model_id = ? AND kind IN ('optim_step', 'load_state') AND status IN ('PENDING', 'RUNNING')`;
    return this.#store.get<{ count: number }>(sql, runId)!.count;
  }

  /** The forward_backward operations whose gradients wait for the next optim_step, oldest first. */
  contributions(runId: string): JobRecord[] {
    const rest = `WHERE model_id = ? AND kind = 'forward_backward' AND status = 'COMPLETED' AND to_step IS NULL
      AND cancel_requested = 0 ORDER BY seq`;
    return readJobs(this.#store, rest, runId);
  }

  /** Marks the waiting gradients as used (or dropped) by this step. */
  consumeContributions(runId: string, step: number): void {
    const sql = `UPDATE jobs SET to_step = ? WHERE model_id = ? AND kind = 'forward_backward' AND status = 'COMPLETED'
      AND to_step IS NULL`;
    this.#store.run(sql, step, runId);
  }

  dropResult(operationId: string): void {
    this.#store.run("UPDATE jobs SET report = NULL WHERE id = ?", operationId);
  }

  #one(where: string, ...values: string[]): RunRecord | null {
    type Row = Omit<RunRecord, "closed"> & { closed: number };
    const columns = "model_id AS modelId, owner, request_id AS requestId, name, spec, closed";
    const row = this.#store.get<Row>(`SELECT ${columns} FROM runs WHERE ${where}`, ...values);
    return row ? { ...row, closed: row.closed === 1 } : null;
  }
}
