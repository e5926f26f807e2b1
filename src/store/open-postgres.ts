// Opens a PostgreSQL database: checks that it can be used and brings its schema up to date. Whatever is wrong is one line
// for the operator, without the password.

import pg from "pg";
import { OperatorError } from "../errors/faults.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { PostgresStore } from "./postgres.ts";
import { clientConfig } from "./postgres-connections.ts";
import { whyUnusable } from "./postgres-errors.ts";
import { migratePostgres } from "./postgres-schema.ts";
import type { Store } from "./store.ts";

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
