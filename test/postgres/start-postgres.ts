// A real PostgreSQL server for tests. It ends with the test process. FLYWHEEL_TEST_POSTGRES says which one: "system" (the
// programs of this machine), "embedded" (those of the npm package) or the URL of a running server, whose user may create
// databases. Unset: the machine's programs where there are any, else the package's.

import { createHash, randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../support/free-port.ts";
import { runFolder } from "../temporary-folder.ts";
import { findOwner, mayEnter } from "./account.ts";
import { findPrograms, type Source } from "./binaries.ts";
import { Guard } from "./guard.ts";

export interface TestPostgres {
  /** Of a superuser, for the database "postgres". */
  url: string;
  /** The folder of the Unix socket; null for a server that was there before. */
  socketDir: string | null;
  /** Returns the URL of a new, empty database. */
  createDatabase(name?: string): Promise<string>;
  /** Returns when the server accepts connections again. "immediate": it ends without a checkpoint, as in a crash. */
  restart(mode: "fast" | "immediate"): Promise<void>;
  /** SIGKILL. `restart` starts it again. */
  kill(): Promise<void>;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Or the URL of a running server. */
  source?: Source | (string & {}) | undefined;
  /** Wait for the disk at every commit, as in production. */
  fsync?: boolean;
  /** The URLs use a loopback port and a password instead of the Unix socket. */
  tcp?: boolean;
  /** More settings of postgresql.conf. */
  settings?: Record<string, string>;
}

const PASSWORD = "flywheel-test";
/** The path of a socket, "BASE/fw-pg-xxxxxx/.s.PGSQL.5432.lock", has at most 107 bytes, on macOS 103. */
const MAX_BASE = 70;
/** Node connects to no Unix sockets there. */
const NO_SOCKETS = process.platform === "win32";
const FAST = { fsync: "off", full_page_writes: "off" };
/** Shared memory becomes files in the server's folder, so that a killed server leaves none elsewhere. */
const SETTINGS = {
  dynamic_shared_memory_type: "mmap",
  shared_buffers: "32MB",
  max_connections: "200",
  lc_messages: "C",
};

export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const source = options.source ?? (process.env.FLYWHEEL_TEST_POSTGRES || undefined);
  if (source === undefined || source === "system" || source === "embedded") return startOwn({ ...options, source });
  if (/^postgres(ql)?:/.test(source)) return borrow(source);
  throw new Error(`FLYWHEEL_TEST_POSTGRES must be system, embedded or a URL, not ${source}`);
}

type OwnOptions = PostgresOptions & { source: Source | undefined };

async function startOwn({ source, fsync = false, tcp = NO_SOCKETS, settings }: OwnOptions): Promise<TestPostgres> {
  const port = tcp ? await freePort() : 5432;
  const owner = findOwner();
  const programs = findPrograms(source);
  const base = tmpdir().length < MAX_BASE && mayEnter(tmpdir(), owner) ? tmpdir() : "/tmp";
  const guard = new Guard({
    base,
    programs,
    copy: !mayEnter(join(programs, "bin"), owner),
    template: base === runFolder() ? templateOf(base, programs) : null,
    owner,
    password: PASSWORD,
    settings: {
      ...SETTINGS,
      ...(fsync ? {} : FAST),
      port: String(port),
      listen_addresses: tcp ? "127.0.0.1" : "",
      ...settings,
    },
  });
  const socketDir = await guard.folder;
  const urlOf = (database: string) =>
    tcp
      ? `postgres://flywheel:${PASSWORD}@127.0.0.1:${port}/${database}`
      : `postgres://flywheel@localhost/${database}?host=${encodeURIComponent(socketDir)}`;
  await guard.order({ do: "start" });
  return {
    url: urlOf("postgres"),
    socketDir,
    async createDatabase(name = newName()) {
      await query(urlOf("postgres"), `CREATE DATABASE "${name}"`);
      return urlOf(name);
    },
    async restart(mode) {
      await guard.order({ do: "end", signal: mode === "fast" ? "SIGINT" : "SIGQUIT" });
      await guard.order({ do: "start" });
    },
    kill: () => guard.order({ do: "end", signal: "SIGKILL" }),
    stop: () => guard.release(),
  };
}

/** Setting up the data takes most of a server's start, so the servers of a test run share the result. */
function templateOf(folder: string, programs: string): string | null {
  if (process.platform === "win32") return null;
  return join(folder, `postgres-${createHash("sha256").update(programs).digest("hex").slice(0, 8)}`);
}

/** A server that somebody else runs: we only make databases, and remove them at the end. */
function borrow(url: string): TestPostgres {
  const names: string[] = [];
  const notOurs = () => {
    throw new Error("The server of FLYWHEEL_TEST_POSTGRES is not ours to end. Unset the variable to run this test.");
  };
  return {
    url,
    socketDir: null,
    async createDatabase(name = newName()) {
      await query(url, `CREATE DATABASE "${name}"`);
      names.push(name);
      const own = new URL(url);
      own.pathname = `/${name}`;
      return own.href;
    },
    restart: async () => notOurs(),
    kill: async () => notOurs(),
    async stop() {
      for (const name of names.splice(0)) await query(url, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
    },
  };
}

export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

function newName(): string {
  return `flywheel_test_${randomBytes(6).toString("hex")}`;
}
