// Steps and models that are gone but whose files are still there, because requests and engines may still read them. The
// row comes in the transaction that removes the step, and goes after the files.

import type { Sql } from "./store.ts";

export interface RemovedStep {
  modelId: string;
  /** null = the model as a whole. */
  step: number | null;
  /** The folder of the step, or of the model, below the folder of all models. */
  folder: string;
  /** Milliseconds since 1970, by the clock of the server that removed it. */
  removedAt: number;
}

/** Whose account the files count in until they are deleted, and how much. */
export interface RemovedBytes {
  owner: string;
  bytes: number;
}

export class RemovedStepTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async insert({ modelId, step, folder, removedAt, owner, bytes }: RemovedStep & RemovedBytes): Promise<void> {
    const sql = `INSERT INTO removed_steps (folder, model_id, step, removed_at, owner, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT (folder) DO NOTHING`;
    await this.#sql.run(sql, folder, modelId, step, removedAt, owner, bytes);
  }

  /** Longest gone first. */
  all(): Promise<RemovedStep[]> {
    return this.#sql.all(
      `SELECT model_id AS "modelId", step, folder, removed_at AS "removedAt" FROM removed_steps ORDER BY removed_at, folder`,
    );
  }

  async delete(folder: string): Promise<void> {
    await this.#sql.run("DELETE FROM removed_steps WHERE folder = ?1", folder);
  }
}
