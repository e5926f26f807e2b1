// Tags and notes that people write on models and jobs. A training run is a model. They go with their model.
import type { SqlValue, Statements } from "../store.ts";
import type { Owner } from "./models.ts";

export interface NoteRecord {
  /** The id of a model or of a job. */
  subject: string;
  /** The model, or that of the job. */
  modelId: string;
  owner: string;
  tags: string[];
  text: string;
  updatedAt: string;
}

export class NoteTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Ordered by subject. `after`: the last one seen. */
  async list(owner: Owner, after: string | null, limit: number): Promise<NoteRecord[]> {
    const values: SqlValue[] = [owner, after ?? "", limit];
    const rows = await this.#sql.all<Omit<NoteRecord, "tags"> & { tags: string }>(
      `SELECT subject, model_id AS "modelId", owner, tags, text, updated_at AS "updatedAt" FROM notes
       WHERE (CAST(?1 AS TEXT) IS NULL OR owner = ?1) AND subject > ?2 ORDER BY subject LIMIT ?3`,
      ...values,
    );
    return rows.map((row) => ({ ...row, tags: JSON.parse(row.tags) as string[] }));
  }

  async count(owner: string): Promise<number> {
    const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM notes WHERE owner = ?1";
    return (await this.#sql.get<{ count: number }>(sql, owner))!.count;
  }

  async put({ subject, modelId, owner, tags, text, updatedAt }: NoteRecord): Promise<void> {
    await this.#sql.run(
      `INSERT INTO notes (subject, model_id, owner, tags, text, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
       ON CONFLICT (subject) DO UPDATE SET tags = ?4, text = ?5, updated_at = ?6`,
      ...[subject, modelId, owner, JSON.stringify(tags), text, updatedAt],
    );
  }

  async has(subject: string): Promise<boolean> {
    return (await this.#sql.get("SELECT 1 AS found FROM notes WHERE subject = ?1", subject)) !== undefined;
  }

  async remove(subject: string): Promise<void> {
    await this.#sql.run("DELETE FROM notes WHERE subject = ?1", subject);
  }
}
