// The store of a test run: SQLite, or PostgreSQL in the project "postgres" of vitest.config.ts. A store belongs to a folder, as
// the one of a server does: the same folder gives the same rows.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, inject } from "vitest";
import { forPostgres, MIGRATIONS, type Migration } from "../../src/store/migrations.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { startPostgres, type TestPostgres } from "../postgres/start-postgres.ts";

export type StoreKind = "SQLite" | "PostgreSQL";

export const PROJECT_STORE: StoreKind = process.env.FLYWHEEL_TEST_STORE === "postgres" ? "PostgreSQL" : "SQLite";

/** For `describe.each`: tests of the store have its name in theirs. */
export const STORES: readonly StoreKind[] = [PROJECT_STORE];

export interface OpenStore {
  /** Also for a second connection to the same rows. */
  (folder: string, migrations?: readonly Migration[]): Promise<Store>;
  /** What --database is for a server of this folder; null = its rows are in the folder. */
  database(folder: string): Promise<string | null>;
}

/** Call it at the top of a `describe`. */
export function storesOf(kind: StoreKind): OpenStore {
  return kind === "SQLite" ? Object.assign(openFile, { database: async () => null }) : postgresStores();
}

/** The statements of a migration, for a store that is open already. */
export function statementsOf(kind: StoreKind, { sqlite, postgres }: Migration): string[] {
  const sql = kind === "SQLite" ? sqlite : (postgres ?? forPostgres(sqlite));
  return sql.split(";").filter((statement) => statement.trim() !== "");
}

async function openFile(folder: string, migrations = MIGRATIONS): Promise<Store> {
  return openSqlite(join(folder, "flywheel.db"), migrations);
}

/** The server of the project "postgres". Files of tests share this module, and with it what remembers their databases. */
let postgres: Promise<TestPostgres> | null = null;

/** Removes the databases that were made since the last call. */
export async function dropDatabases(): Promise<void> {
  await (await postgres)?.stop();
}

function postgresStores(): OpenStore {
  const urls = new Map<string, string>();
  const database = async (folder: string) => {
    postgres ??= startPostgres({ source: inject("postgresUrl") });
    const url = urls.get(folder) ?? (await (await postgres).createDatabase());
    urls.set(folder, url);
    return url;
  };
  const open = async (folder: string, migrations?: readonly Migration[]) =>
    openPostgres(await database(folder), null, migrations);
  return Object.assign(open, { database });
}

/** Returns a function that opens new stores, which are closed after each test. */
export function freshStores(kind: StoreKind): (migrations?: readonly Migration[]) => Promise<Store> {
  const open = storesOf(kind);
  const opened: { folder: string; store: Store }[] = [];
  afterEach(async () => {
    for (const { folder, store } of opened.splice(0)) {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
  return async (migrations) => {
    const folder = mkdtempSync(join(tmpdir(), "store-"));
    const store = await open(folder, migrations);
    opened.push({ folder, store });
    return store;
  };
}
