// What a list of models shows of each beyond its own row: steps, jobs, rewards and whose it is. A page of models takes
// a few statements, however many they are.

import type { Statements } from "../store.ts";
import { nameOfWorkspace } from "../workspaces.ts";
import { type JobRecord, readJobs } from "./jobs.ts";

export interface ModelSummary {
  latestStep: number | null;
  /** Of the files of all steps. */
  bytes: number;
  /** Jobs and operations that wait or run. */
  openJobs: number;
  /** Of the newest steps that have one, the newest last. */
  recentRewards: readonly number[];
  lastJob: JobRecord | null;
  workspaceName: string;
}

const RECENT = 30;

export class ModelSummaryTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** In the order of the models. */
  async of(models: readonly { id: string; owner: string }[]): Promise<ModelSummary[]> {
    if (models.length === 0) return [];
    const ids = models.map(({ id }) => id);
    const owners = [...new Set(models.map(({ owner }) => owner))];
    const steps = await this.#steps(ids);
    const rewards = await this.#rewards(ids);
    const open = await this.#openJobs(ids);
    const last = await this.#lastJobs(ids);
    const names = await this.#workspaceNames(owners);
    return models.map(({ id, owner }) => ({
      latestStep: steps.get(id)?.latest ?? null,
      bytes: steps.get(id)?.bytes ?? 0,
      openJobs: open.get(id) ?? 0,
      recentRewards: rewards.filter((row) => row.modelId === id).map(({ reward }) => reward),
      lastJob: last.get(id) ?? null,
      workspaceName: names.get(owner) ?? nameOfWorkspace(owner),
    }));
  }

  async #steps(ids: readonly string[]): Promise<Map<string, { latest: number; bytes: number }>> {
    const rows = await this.#sql.all<{ modelId: string; latest: number; bytes: number }>(
      `SELECT model_id AS "modelId", MAX(step) AS latest, CAST(SUM(bytes) AS BIGINT) AS bytes FROM steps
       WHERE model_id IN ${listOf(ids)} GROUP BY model_id`,
      ...ids,
    );
    return new Map(rows.map((row) => [row.modelId, row]));
  }

  #rewards(ids: readonly string[]): Promise<{ modelId: string; reward: number }[]> {
    const ranked = `SELECT model_id, step, reward, ROW_NUMBER() OVER (PARTITION BY model_id ORDER BY step DESC) AS place
      FROM steps WHERE model_id IN ${listOf(ids)} AND reward IS NOT NULL`;
    return this.#sql.all(
      `SELECT model_id AS "modelId", reward FROM (${ranked}) AS ranked WHERE place <= ${RECENT} ORDER BY step`,
      ...ids,
    );
  }

  async #openJobs(ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#sql.all<{ modelId: string; count: number }>(
      `SELECT model_id AS "modelId", CAST(COUNT(*) AS BIGINT) AS count FROM jobs
       WHERE model_id IN ${listOf(ids)} AND status IN ('PENDING', 'RUNNING') GROUP BY model_id`,
      ...ids,
    );
    return new Map(rows.map(({ modelId, count }) => [modelId, count]));
  }

  async #lastJobs(ids: readonly string[]): Promise<Map<string, JobRecord>> {
    const newest = `SELECT MAX(seq) FROM jobs WHERE model_id IN ${listOf(ids)} AND kind IN ('rl', 'sft') GROUP BY model_id`;
    const jobs = await readJobs(this.#sql, `WHERE seq IN (${newest})`, ...ids);
    return new Map(jobs.map((job) => [job.modelId, job]));
  }

  async #workspaceNames(ids: readonly string[]): Promise<Map<string, string>> {
    const sql = `SELECT id, name FROM workspaces WHERE id IN ${listOf(ids)}`;
    const rows = await this.#sql.all<{ id: string; name: string }>(sql, ...ids);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }
}

/** (?1, ?2, …) */
function listOf(values: readonly unknown[]): string {
  return `(${values.map((_, i) => `?${i + 1}`).join(", ")})`;
}
