// The databases that are compared, each with what a server of it has cost. PostgreSQL waits for the disk at every commit,
// as in production.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { startPostgres } from "../../test/postgres/start-postgres.ts";

export interface Database {
  /** With its version. */
  name: string;
  store: Store;
  /** What the database does by itself after some minutes, and plans its queries by. */
  gatherStatistics(): Promise<void>;
  /** Seconds of processor time of this process and of the database's own; null if the system does not tell. */
  cpuSeconds(): number | null;
  close(): Promise<void>;
}

export async function sqlite(): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), "bench-store-"));
  const store = openSqlite(join(folder, "flywheel.db"));
  const { version } = (await store.get<{ version: string }>("SELECT sqlite_version() AS version"))!;
  return {
    name: `SQLite ${version}`,
    store,
    gatherStatistics: async () => {}, // SQLite has none unless asked, and a server does not ask
    cpuSeconds: ownSeconds,
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function postgres(): Promise<Database> {
  const server = await startPostgres({ fsync: true, settings: { shared_buffers: "128MB", logging_collector: "off" } });
  const store = await openPostgres(await server.createDatabase());
  const facts = await store.get<{ version: string; pid: number }>(
    "SELECT current_setting('server_version') AS version, pg_backend_pid() AS pid",
  );
  const main = statOf(facts!.pid)?.parent ?? null;
  return {
    name: `PostgreSQL ${facts!.version.split(" ")[0]}`,
    store,
    gatherStatistics: async () => void (await store.run("ANALYZE")),
    cpuSeconds() {
      const server = main === null ? null : serverSeconds(main);
      return server === null ? null : ownSeconds() + server;
    },
    async close() {
      await store.close();
      await server.stop();
    },
  };
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Of all processes of a PostgreSQL server, the ended ones too. `main`: id of the first. */
function serverSeconds(main: number): number | null {
  const list = `/proc/${main}/task/${main}/children`;
  if (!existsSync(list)) return null;
  const children = readFileSync(list, "utf8").trim().split(" ").map(Number);
  const { own, ended } = statOf(main)!;
  return children.reduce((sum, child) => sum + (statOf(child)?.own ?? 0), own + ended);
}

/** Linux: seconds of a process itself and of its children that have ended. */
function statOf(pid: number): { parent: number; own: number; ended: number } | null {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return null;
  // after the name, which may hold anything but ends with the last parenthesis: state, parent, …
  const text = readFileSync(file, "utf8");
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const seconds = (from: number) => (fields[from]! + fields[from + 1]!) / TICKS_PER_SECOND;
  return { parent: fields[1]!, own: seconds(11), ended: seconds(13) };
}

/** Of Linux, in what it tells programs. */
const TICKS_PER_SECOND = 100;
