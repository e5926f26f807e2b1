// Which folder has the files of this database, and which files in it must go.
import { randomUUID } from "node:crypto";
import type { Statements, Store } from "../store.ts";

// The database and its folder each have an identity: a database that meets another folder, or a folder
// that meets another database, is noticed before anything is changed.

export interface StorageIdentity {
  /** Of the database. */
  database: string;
  /** Of the folder; null = the database has none yet. */
  folder: string | null;
}

export class StorageTable {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Makes the identity of the database if it has none. */
  async identity(): Promise<StorageIdentity> {
    const found = await this.#read();
    if (found) return found;
    const sql = "INSERT INTO storage (id, database_id) VALUES (1, ?1) ON CONFLICT (id) DO NOTHING";
    await this.#store.run(sql, randomUUID());
    return (await this.#read())!;
  }

  /** Takes a folder for the database unless it has one. Returns the one that it has then. */
  async claim(folder: string): Promise<string> {
    await this.#store.run("UPDATE storage SET folder_id = ?1 WHERE id = 1 AND folder_id IS NULL", folder);
    return (await this.#read())!.folder!;
  }

  #read(): Promise<StorageIdentity | undefined> {
    return this.#store.get("SELECT database_id AS database, folder_id AS folder FROM storage WHERE id = 1");
  }
}

// Steps and models that are gone but whose files are still there, because requests and engines may still read them. The
// row comes in the transaction that removes the step, and goes after the files.

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
  readonly #sql: Statements;

  constructor(sql: Statements) {
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
