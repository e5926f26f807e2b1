// Which folder has the files of this database. Both have an identity: a database that meets another folder, or a folder
// that meets another database, is noticed before anything is changed.

import { randomUUID } from "node:crypto";
import type { Store } from "./store.ts";

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
