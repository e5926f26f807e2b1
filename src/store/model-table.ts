// The rows of trainable models and their steps. A model belongs to one owner. A step number is never used twice,
// because it comes from a counter that only grows. The files of a step are not handled here.

import { randomUUID } from "node:crypto";
import type { SqlValue, Store } from "./db.ts";

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
  createdAt: string;
}

export interface StepRecord {
  id: string;
  modelId: string;
  step: number;
  /** null for step 0, forks and rollbacks. */
  jobId: string | null;
  bytes: number;
  metrics: Record<string, number>;
  createdAt: string;
}

/** null or absent = any. */
export type ModelFilter = Partial<Record<"entity" | "project" | "name" | "baseModel", string | null>>;

/** The columns under the names of ModelRecord and StepRecord. */
const MODEL = `id, owner, entity, project, name, base_model AS baseModel, lora_rank AS loraRank, lora_alpha AS loraAlpha,
  next_step AS nextStep, created_at AS createdAt`;
const STEP = "id, model_id AS modelId, step, job_id AS jobId, bytes, metrics, created_at AS createdAt";

export class ModelTable {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  insert(model: Omit<ModelRecord, "createdAt">): ModelRecord {
    const createdAt = new Date().toISOString();
    const { id, owner, entity, project, name, baseModel, loraRank, loraAlpha, nextStep } = model;
    this.#store.run(
      `INSERT INTO models (id, owner, entity, project, name, base_model, lora_rank, lora_alpha, next_step, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[id, owner, entity, project, name, baseModel, loraRank, loraAlpha, nextStep, createdAt],
    );
    return { ...model, createdAt };
  }

  /** The model of any owner. Routes use `owned`. */
  get(id: string): ModelRecord | null {
    return this.#model("WHERE id = ?", id);
  }

  owned(id: string, owner: string): ModelRecord | null {
    return this.#model("WHERE id = ? AND owner = ?", id, owner);
  }

  named(owner: string, entity: string, project: string, name: string): ModelRecord | null {
    return this.#model("WHERE owner = ? AND entity = ? AND project = ? AND name = ?", owner, entity, project, name);
  }

  /** Several projects may use the same name. The newest model gets it. */
  newestNamed(owner: string, name: string): ModelRecord | null {
    return this.#model("WHERE owner = ? AND name = ? ORDER BY created_at DESC, rowid DESC LIMIT 1", owner, name);
  }

  /** Whether any owner has a model with this name. */
  hasNamed(name: string): boolean {
    return this.#store.get("SELECT 1 AS found FROM models WHERE name = ? LIMIT 1", name) !== undefined;
  }

  all(): ModelRecord[] {
    return this.#models("ORDER BY rowid");
  }

  /** Oldest first. `after`: id of the last model seen. If that is gone, the page is empty. */
  list(owner: string, filter: ModelFilter, after: string | null, limit: number): ModelRecord[] {
    return this.#models(
      `WHERE owner = ?1
         AND (?2 IS NULL OR entity = ?2) AND (?3 IS NULL OR project = ?3)
         AND (?4 IS NULL OR name = ?4) AND (?5 IS NULL OR base_model = ?5)
         AND (?6 IS NULL OR rowid > (SELECT rowid FROM models WHERE id = ?6))
       ORDER BY rowid LIMIT ?7`,
      ...[owner, filter.entity ?? null, filter.project ?? null, filter.name ?? null, filter.baseModel ?? null],
      ...[after, limit],
    );
  }

  delete(id: string): void {
    this.#store.run("DELETE FROM models WHERE id = ?", id);
  }

  /** Adds a step and moves the model's counter past it. Must run in a transaction. */
  insertStep(
    modelId: string,
    step: number,
    jobId: string | null,
    bytes: number,
    metrics: Record<string, number>,
  ): void {
    const sql = "UPDATE models SET next_step = ? WHERE id = ? AND next_step <= ?";
    const moved = this.#store.run(sql, step + 1, modelId, step);
    if (moved !== 1) throw new Error(`model ${modelId} is gone, or step ${step} was already given`);
    this.#store.run(
      "INSERT INTO steps (id, model_id, step, job_id, bytes, metrics, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ...[randomUUID(), modelId, step, jobId, bytes, JSON.stringify(metrics), new Date().toISOString()],
    );
  }

  step(modelId: string, step: number): StepRecord | null {
    return this.#steps("WHERE model_id = ? AND step = ?", modelId, step)[0] ?? null;
  }

  newestStep(modelId: string): StepRecord | null {
    return this.#steps("WHERE model_id = ? ORDER BY step DESC LIMIT 1", modelId)[0] ?? null;
  }

  /** Oldest first. */
  steps(modelId: string): StepRecord[] {
    return this.stepsAfter(modelId, -1);
  }

  stepsAfter(modelId: string, step: number): StepRecord[] {
    return this.#steps("WHERE model_id = ? AND step > ? ORDER BY step", modelId, step);
  }

  /** The first existing step with this number or a higher one. */
  firstStepFrom(modelId: string, step: number): number | null {
    const sql = "SELECT MIN(step) AS step FROM steps WHERE model_id = ? AND step >= ?";
    return this.#store.get<{ step: number | null }>(sql, modelId, step)?.step ?? null;
  }

  countSteps(modelId: string): number {
    return this.#store.get<{ count: number }>("SELECT COUNT(*) AS count FROM steps WHERE model_id = ?", modelId)!.count;
  }

  deleteStep(modelId: string, step: number): void {
    this.#store.run("DELETE FROM steps WHERE model_id = ? AND step = ?", modelId, step);
  }

  /** Adds or replaces metrics of a step. */
  mergeMetrics(modelId: string, step: number, metrics: Record<string, number>): void {
    this.#store.transaction(() => {
      const known = this.step(modelId, step);
      if (!known) return;
      const merged = JSON.stringify({ ...known.metrics, ...metrics });
      this.#store.run("UPDATE steps SET metrics = ? WHERE model_id = ? AND step = ?", merged, modelId, step);
    });
  }

  /** Whether any model was trained. */
  hasTrainedSteps(): boolean {
    return this.#store.get("SELECT 1 FROM steps WHERE step > 0 LIMIT 1") !== undefined;
  }

  /** Bytes of all steps of an owner's models. */
  bytesOf(owner: string): number {
    const sql = "SELECT SUM(bytes) AS bytes FROM steps JOIN models ON models.id = model_id WHERE owner = ?";
    return this.#store.get<{ bytes: number | null }>(sql, owner)?.bytes ?? 0;
  }

  /** The models that the rest of a query selects. */
  #models(rest: string, ...params: SqlValue[]): ModelRecord[] {
    return this.#store.all(`SELECT ${MODEL} FROM models ${rest}`, ...params);
  }

  #model(rest: string, ...params: SqlValue[]): ModelRecord | null {
    return this.#models(rest, ...params)[0] ?? null;
  }

  #steps(rest: string, ...params: SqlValue[]): StepRecord[] {
    type Row = Omit<StepRecord, "metrics"> & { metrics: string };
    const rows = this.#store.all<Row>(`SELECT ${STEP} FROM steps ${rest}`, ...params);
    return rows.map((row) => ({ ...row, metrics: JSON.parse(row.metrics) as Record<string, number> }));
  }
}
