// Brings the schema of a PostgreSQL database up to date. All missing migrations run in one transaction, so a failure
// leaves the database as it was. Servers that start at once take turns.

import type pg from "pg";
import { OperatorError } from "../errors/faults.ts";
import { type Migration, newerSchema } from "./migrations.ts";

/** The version is the number of migrations applied. No row = none. */
const VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)";
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('flywheel-migrations'))";

type Client = Pick<pg.ClientBase, "query">;

export async function migratePostgres(client: Client, migrations: readonly Migration[]): Promise<void> {
  // a database that is up to date needs no lock, and its user no right to create tables
  if ((await hasVersionTable(client)) && (await readVersion(client, migrations)) === migrations.length) return;
  await client.query("BEGIN");
  try {
    await client.query(LOCK);
    await client.query(VERSION_TABLE);
    for (let next = await readVersion(client, migrations); next < migrations.length; next++) {
      await apply(client, migrations[next]!, next + 1);
    }
    await client.query("DELETE FROM schema_version");
    await client.query("INSERT INTO schema_version VALUES ($1)", [migrations.length]);
    await client.query("COMMIT");
  } catch (error) {
    // the first failure is the one to report; a connection that is gone has rolled back already
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

async function hasVersionTable(client: Client): Promise<boolean> {
  const { rows } = await client.query("SELECT to_regclass('schema_version') IS NOT NULL AS found");
  return (rows[0] as { found: boolean }).found;
}

async function readVersion(client: Client, migrations: readonly Migration[]): Promise<number> {
  const { rows } = await client.query("SELECT version FROM schema_version");
  const version = Number((rows[0] as { version: string | number } | undefined)?.version ?? 0);
  if (version > migrations.length) throw new OperatorError(newerSchema(version, migrations.length, "--database"));
  return version;
}

async function apply(client: Client, migration: Migration, version: number): Promise<void> {
  if (migration.postgres === "") return;
  try {
    await client.query(migration.postgres);
  } catch (error) {
    const why = (error as Error).message;
    throw new OperatorError(`migration ${version} (${migration.name}) failed: ${why}`, { cause: error });
  }
}
