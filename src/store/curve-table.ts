// The gradient steps of a model in order, over all its jobs. Those of jobs that failed made no step, so they are left out.

import type { Sql } from "./store.ts";

export interface CurvePoint {
  /** Place among all events; grows along the curve. */
  seq: number;
  /** The step that its job made, or will make. */
  step: number;
  metrics: Record<string, number>;
}

const POINTS = `FROM job_events JOIN jobs ON jobs.id = job_id
  WHERE jobs.model_id = ?1 AND type = 'gradient_step' AND kind IN ('rl', 'sft') AND status IN ('COMPLETED', 'RUNNING')`;

export class CurveTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** `after`: `seq` of the last one seen. */
  async points(modelId: string, after: number, limit: number): Promise<CurvePoint[]> {
    const rows = await this.#sql.all<{ seq: number; step: number; data: string }>(
      `SELECT job_events.seq AS seq, COALESCE(to_step, from_step + 1) AS step, data ${POINTS} AND job_events.seq > ?2
       ORDER BY job_events.seq LIMIT ?3`,
      ...[modelId, after, limit],
    );
    return rows.map(({ data, ...row }) => ({ ...row, metrics: JSON.parse(data) as Record<string, number> }));
  }

  /** The number of gradient steps up to this one. */
  async countUpTo(modelId: string, seq: number): Promise<number> {
    const sql = `SELECT CAST(COUNT(*) AS BIGINT) AS count ${POINTS} AND job_events.seq <= ?2`;
    return (await this.#sql.get<{ count: number }>(sql, modelId, seq))!.count;
  }
}
