// Opens a PostgreSQL database: checks that it can be used and brings its schema up to date. Whatever is wrong is one line
// for the operator, without the password.
import pg from "pg";
import { OperatorError } from "../../errors/faults.ts";
import { forPostgres, MIGRATIONS, type Migration, newerSchema } from "../migrations.ts";
import type { Store } from "../store.ts";
import { clientConfig, whyUnusable } from "./connections.ts";
import { PostgresStore } from "./store.ts";

// All missing migrations run in one transaction, so a failure leaves the database as it was. Servers that start at once
// take turns.

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
  const sql = migration.postgres ?? forPostgres(migration.sqlite);
  try {
    await client.query(sql);
  } catch (error) {
    const why = (error as Error).message;
    throw new OperatorError(`migration ${version} (${migration.name}) failed: ${why}`, { cause: error });
  }
}

const OLDEST_VERSION = 15;

/** `listenUrl`: where LISTEN works, if a pooler stands between us and the server at `url`. */
export async function openPostgres(
  url: string,
  listenUrl: string | null = null,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<Store> {
  await withClient(url, async (client) => {
    await checkVersion(client);
    await migratePostgres(client, migrations);
  });
  if (listenUrl !== null) await withClient(listenUrl, checkVersion);
  return new PostgresStore(url, listenUrl ?? url);
}

/** The database of a URL for messages: "host:5432/name". */
export function shownDatabase(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  return `${searchParams.get("host") ?? hostname}:${port || 5432}${pathname}`;
}

/** A URL without the name of a database means the one that is called as its user. */
function nameIn(url: string): string {
  const { pathname, username } = new URL(url);
  return decodeURIComponent(pathname.slice(1) || username);
}

async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  let client: pg.Client | null = null;
  try {
    // a migration may take its time
    client = new pg.Client({ ...clientConfig(url), query_timeout: 0 });
    client.on("error", () => {});
    await client.connect();
    await work(client);
  } catch (error) {
    const why = whyUnusable(error, nameIn(url));
    throw new OperatorError(`cannot use the database ${shownDatabase(url)}: ${why}`, { cause: error });
  } finally {
    await client?.end().catch(() => {});
  }
}

async function checkVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version: string }>("SHOW server_version");
  const version = rows[0]!.server_version;
  if (Number.parseInt(version, 10) >= OLDEST_VERSION) return;
  throw new OperatorError(`it is PostgreSQL ${version}; Flywheel needs ${OLDEST_VERSION} or newer`);
}
