// The rows of trainable models and their steps. A model belongs to one owner, a workspace. A step number is never used twice,
// because it comes from a counter that only grows. The files of a step are not handled here.
import { randomUUID } from "node:crypto";
import type { SqlValue, Statements } from "../store.ts";

export interface ModelRecord {
  id: string;
  owner: string;
  entity: string;
  project: string;
  name: string;
  baseModel: string;
  loraRank: number;
  loraAlpha: number;
  /** Number of the next published step. */
  nextStep: number;
  /** The model that it began as a copy of, which may be gone, and its step; null = none, or older than this record. */
  forkedFrom: string | null;
  forkedStep: number | null;
  createdAt: string;
}

/** A model to insert. */
export type NewModelRow = Omit<ModelRecord, "createdAt" | "forkedFrom" | "forkedStep"> &
  Partial<Pick<ModelRecord, "forkedFrom" | "forkedStep">>;

export interface StepRecord {
  id: string;
  modelId: string;
  step: number;
  /** null for step 0, forks and rollbacks. */
  jobId: string | null;
  bytes: number;
  /** Name of its folder inside the folder of its model. Only this row knows it: the number alone does not tell. */
  folder: string;
  /** SHA-256 of its files (training/files/step-folders.ts); null = published by a version that took none. */
  digest: string | null;
  metrics: Record<string, number>;
  origin: StepOrigin;
  createdAt: string;
}

/** How a step came about. */
export type StepOrigin = "training" | "registration" | "fork" | "rollback";

/** The metric of a step that names the one it copies. */
export const ROLLED_BACK_TO = "rolled_back_to";

/** The metric that lists of models show. */
const REWARD = "train/reward";

/** The files of a step, in place and on disk. */
export type StepFiles = Pick<StepRecord, "folder" | "bytes"> & { digest: string };

/** Id of a workspace; null = any. */
export type Owner = string | null;

/** What a client calls a policy, in parts. */
export interface PolicyName {
  /** Of both or of neither: null = any. */
  entity: string | null;
  project: string | null;
  name: string;
  /** null = the newest. */
  step: number | null;
}

/** null or absent = any. */
export type ModelFilter = Partial<Record<"entity" | "project" | "name" | "baseModel", string | null>>;

/** The columns under the names of ModelRecord and StepRecord. */
const MODEL = `id, owner, entity, project, name, base_model AS "baseModel", lora_rank AS "loraRank", lora_alpha AS "loraAlpha",
  next_step AS "nextStep", forked_from AS "forkedFrom", forked_step AS "forkedStep", created_at AS "createdAt"`;
/** Versions that wrote no folder had this one. */
const FOLDER = "COALESCE(folder, 'step-' || step) AS folder";
const IS_FORK = `CASE WHEN EXISTS (SELECT 1 FROM models WHERE models.id = model_id AND forked_step = step) THEN 1 ELSE 0 END`;
const STEP = `id, model_id AS "modelId", step, job_id AS "jobId", bytes, ${FOLDER}, digest, metrics, ${IS_FORK} AS "isFork",
  created_at AS "createdAt"`;

export class ModelTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  async insert(model: NewModelRow): Promise<ModelRecord> {
    const row = { forkedFrom: null, forkedStep: null, ...model, createdAt: new Date().toISOString() };
    const { id, owner, entity, project, name, baseModel, loraRank, loraAlpha, nextStep } = row;
    await this.#sql.run(
      `INSERT INTO models (id, owner, entity, project, name, base_model, lora_rank, lora_alpha, next_step, forked_from,
         forked_step, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`,
      ...[id, owner, entity, project, name, baseModel, loraRank, loraAlpha, nextStep],
      ...[row.forkedFrom, row.forkedStep, row.createdAt],
    );
    return row;
  }

  /** The model of any owner. Routes use `owned`. */
  get(id: string): Promise<ModelRecord | null> {
    return this.#model("WHERE id = ?1", id);
  }

  owned(id: string, owner: Owner): Promise<ModelRecord | null> {
    return owner === null ? this.get(id) : this.#model("WHERE id = ?1 AND owner = ?2", id, owner);
  }

  named(owner: string, entity: string, project: string, name: string): Promise<ModelRecord | null> {
    const rest = "WHERE owner = ?1 AND entity = ?2 AND project = ?3 AND name = ?4";
    return this.#model(rest, owner, entity, project, name);
  }

  /** Several projects may use the same name. The newest model gets it. */
  newestNamed(owner: string, name: string): Promise<ModelRecord | null> {
    return this.#model("WHERE owner = ?1 AND name = ?2 ORDER BY created_at DESC, seq DESC LIMIT 1", owner, name);
  }

  /**
   * The model that a name means, with the step that it means. Several projects may use the same name; the newest model
   * gets it. `owner` null: of any. `files` null = the model has no such step.
   */
  async policy(
    owner: Owner,
    { entity, project, name, step }: PolicyName,
  ): Promise<{ model: ModelRecord; files: { step: number; folder: string } | null } | null> {
    const [values, conditions]: [SqlValue[], string[]] = [[step], []];
    for (const [column, value] of Object.entries({ owner, entity, project, name })) {
      if (value === null) continue;
      values.push(value);
      conditions.push(`${column} = ?${values.length}`);
    }
    const [row] = await this.#sql.all<ModelRecord & { found: number | null; folder: string }>(
      `SELECT named.*, step AS found, ${FOLDER} FROM (
         SELECT ${MODEL} FROM models WHERE ${conditions.join(" AND ")} ORDER BY created_at DESC, seq DESC LIMIT 1
       ) AS named LEFT JOIN steps ON model_id = named.id
         AND step = COALESCE(CAST(?1 AS BIGINT), (SELECT MAX(step) FROM steps WHERE model_id = named.id))`,
      ...values,
    );
    if (!row) return null;
    const { found, folder, ...model } = row;
    return { model, files: found === null ? null : { step: found, folder } };
  }

  /** Whether any owner has a model with this name. */
  async hasNamed(name: string): Promise<boolean> {
    return (await this.#sql.get("SELECT 1 AS found FROM models WHERE name = ?1 LIMIT 1", name)) !== undefined;
  }

  all(): Promise<ModelRecord[]> {
    return this.#models("ORDER BY seq");
  }

  /** Oldest first. `after`: id of the last model seen. If that is gone, the page is empty. */
  list(owner: Owner, filter: ModelFilter, after: string | null, limit: number): Promise<ModelRecord[]> {
    return this.#models(
      `WHERE (CAST(?1 AS TEXT) IS NULL OR owner = ?1)
         AND (CAST(?2 AS TEXT) IS NULL OR entity = ?2) AND (CAST(?3 AS TEXT) IS NULL OR project = ?3)
         AND (CAST(?4 AS TEXT) IS NULL OR name = ?4) AND (CAST(?5 AS TEXT) IS NULL OR base_model = ?5)
         AND (CAST(?6 AS TEXT) IS NULL OR seq > (SELECT seq FROM models WHERE id = ?6))
       ORDER BY seq LIMIT ?7`,
      ...[owner, filter.entity ?? null, filter.project ?? null, filter.name ?? null, filter.baseModel ?? null],
      ...[after, limit],
    );
  }

  async delete(id: string): Promise<void> {
    await this.#sql.run("DELETE FROM models WHERE id = ?1", id);
  }

  /** Adds a step and moves the model's counter past it. Must run in a transaction. */
  async insertStep(
    modelId: string,
    step: number,
    jobId: string | null,
    { folder, bytes, digest }: StepFiles,
    metrics: Record<string, number>,
  ): Promise<void> {
    const sql = "UPDATE models SET next_step = ?1 WHERE id = ?2 AND next_step <= ?3";
    const moved = await this.#sql.run(sql, step + 1, modelId, step);
    if (moved !== 1) throw new Error(`model ${modelId} is gone, or step ${step} was already given`);
    await this.#sql.run(
      `INSERT INTO steps (id, model_id, step, job_id, bytes, folder, digest, metrics, reward, created_at, metric_bytes)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, OCTET_LENGTH(?8))`,
      ...[randomUUID(), modelId, step, jobId, bytes, folder, digest],
      ...[JSON.stringify(metrics), metrics[REWARD] ?? null, new Date().toISOString()],
    );
  }

  async step(modelId: string, step: number): Promise<StepRecord | null> {
    return (await this.#steps("WHERE model_id = ?1 AND step = ?2", modelId, step))[0] ?? null;
  }

  async hasStep(modelId: string, step: number): Promise<boolean> {
    const sql = "SELECT 1 AS found FROM steps WHERE model_id = ?1 AND step = ?2";
    return (await this.#sql.get(sql, modelId, step)) !== undefined;
  }

  /** The name of the folder of a step; null = there is no such step. */
  async folderOf(modelId: string, step: number): Promise<string | null> {
    const sql = `SELECT ${FOLDER} FROM steps WHERE model_id = ?1 AND step = ?2`;
    return (await this.#sql.get<{ folder: string }>(sql, modelId, step))?.folder ?? null;
  }

  /** The folders of all steps of all models. */
  folders(): Promise<{ modelId: string; folder: string }[]> {
    return this.#sql.all(`SELECT model_id AS "modelId", ${FOLDER} FROM steps`);
  }

  /** Whether a job that trains from this step is running, on whatever server. */
  async isTrainedFrom(modelId: string, step: number): Promise<boolean> {
    const sql = "SELECT 1 AS found FROM jobs WHERE model_id = ?1 AND status = 'RUNNING' AND from_step = ?2";
    return (await this.#sql.get(sql, modelId, step)) !== undefined;
  }

  /** Whether the row of any step of the model has this folder. */
  async hasFolder(modelId: string, folder: string): Promise<boolean> {
    const sql = "SELECT 1 AS found FROM steps WHERE model_id = ?1 AND COALESCE(folder, 'step-' || step) = ?2";
    return (await this.#sql.get(sql, modelId, folder)) !== undefined;
  }

  async newestStep(modelId: string): Promise<StepRecord | null> {
    return (await this.#steps("WHERE model_id = ?1 ORDER BY step DESC LIMIT 1", modelId))[0] ?? null;
  }

  /** Oldest first. */
  steps(modelId: string): Promise<StepRecord[]> {
    return this.stepsAfter(modelId, -1);
  }

  stepsAfter(modelId: string, step: number): Promise<StepRecord[]> {
    return this.#steps("WHERE model_id = ?1 AND step > ?2 ORDER BY step", modelId, step);
  }

  /** The first existing step with this number or a higher one. */
  async firstStepFrom(modelId: string, step: number): Promise<number | null> {
    const sql = "SELECT MIN(step) AS step FROM steps WHERE model_id = ?1 AND step >= ?2";
    return (await this.#sql.get<{ step: number | null }>(sql, modelId, step))?.step ?? null;
  }

  async countSteps(modelId: string): Promise<number> {
    const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM steps WHERE model_id = ?1";
    return (await this.#sql.get<{ count: number }>(sql, modelId))!.count;
  }

  /** Returns what its files are; null = there was no such step. */
  async deleteStep(modelId: string, step: number): Promise<Pick<StepFiles, "folder" | "bytes"> | null> {
    const sql = `DELETE FROM steps WHERE model_id = ?1 AND step = ?2 RETURNING ${FOLDER}, bytes`;
    return (await this.#sql.all<Pick<StepFiles, "folder" | "bytes">>(sql, modelId, step))[0] ?? null;
  }

  async setMetrics(modelId: string, step: number, metrics: Record<string, number>): Promise<void> {
    const sql =
      "UPDATE steps SET metrics = ?1, reward = ?2, metric_bytes = OCTET_LENGTH(?1) WHERE model_id = ?3 AND step = ?4";
    await this.#sql.run(sql, JSON.stringify(metrics), metrics[REWARD] ?? null, modelId, step);
  }

  /** Whether any model was trained. */
  async hasTrainedSteps(): Promise<boolean> {
    return (await this.#sql.get("SELECT 1 AS found FROM steps WHERE step > 0 LIMIT 1")) !== undefined;
  }

  /** The models that the rest of a query selects. */
  #models(rest: string, ...params: SqlValue[]): Promise<ModelRecord[]> {
    return this.#sql.all(`SELECT ${MODEL} FROM models ${rest}`, ...params);
  }

  async #model(rest: string, ...params: SqlValue[]): Promise<ModelRecord | null> {
    return (await this.#models(rest, ...params))[0] ?? null;
  }

  async #steps(rest: string, ...params: SqlValue[]): Promise<StepRecord[]> {
    const rows = await this.#sql.all<StepRow>(`SELECT ${STEP} FROM steps ${rest}`, ...params);
    return rows.map(({ isFork, ...row }) => {
      const metrics = JSON.parse(row.metrics) as Record<string, number>;
      return { ...row, metrics, origin: originOf(row, metrics, isFork === 1) };
    });
  }
}

type StepRow = Omit<StepRecord, "metrics" | "origin"> & { metrics: string; isFork: number };

/** Forks from before they were recorded are known by their number: a model of its own begins with step 0. */
function originOf({ jobId, step }: Pick<StepRow, "jobId" | "step">, metrics: object, isFork: boolean): StepOrigin {
  if (jobId !== null) return "training";
  if (ROLLED_BACK_TO in metrics) return "rollback";
  return isFork || step > 0 ? "fork" : "registration";
}
