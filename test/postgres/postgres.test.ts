// The PostgreSQL server of the tests itself: both sources, crashes, and that nothing is left behind.

import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findOwner } from "./account.ts";
import { findPrograms, findSystem, makeLinks, type Source } from "./binaries.ts";
import { Guard, type GuardConfig } from "./guard.ts";
import { query, startPostgres, type TestPostgres } from "./start-postgres.ts";
import { usePostgres } from "./use-postgres.ts";

const SOURCES: Source[] = findSystem() === undefined ? ["embedded"] : ["system", "embedded"];

let server: TestPostgres | null = null;
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  server = null;
});

/** Processes that work in a folder, as all of a server do. Only Linux tells. */
function processesIn(folder: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
    } catch {
      return false; // Not a process, or it ended just now.
    }
  });
}

async function expectGone(folder: string): Promise<void> {
  await expect.poll(() => existsSync(folder)).toBe(false);
  expect(processesIn(folder)).toEqual([]);
}

describe.each(SOURCES)("%s", (source) => {
  it("answers, outlives crashes with what it committed, and leaves nothing", async () => {
    server = await startPostgres({ source, fsync: true });
    expect(await query(server.url, "SELECT version()")).toEqual([
      { version: expect.stringMatching(/^PostgreSQL 1[5-9]/) },
    ]);
    const url = await server.createDatabase();
    await query(url, "CREATE TABLE kept AS SELECT 7 AS n");
    await server.restart("immediate");
    expect(await query(url, "SELECT n FROM kept")).toEqual([{ n: 7 }]);
    await server.kill();
    await expect(query(url, "SELECT 1")).rejects.toThrow();
    await server.restart("fast");
    expect(await query(url, "SELECT n FROM kept")).toEqual([{ n: 7 }]);
    const folder = server.socketDir!;
    if (process.platform === "linux") expect(processesIn(folder).length).toBeGreaterThan(3);
    await server.stop();
    await expectGone(folder);
  });

  it("listens on a port with a password, if asked", async () => {
    server = await startPostgres({ source, tcp: true });
    const url = await server.createDatabase();
    expect(await query(url, "SELECT inet_server_port() IS NOT NULL AS tcp")).toEqual([{ tcp: true }]);
    const wrong = url.replace(/:[^:@]+@/, ":wrong@");
    await expect(query(wrong, "SELECT 1")).rejects.toThrow("password authentication failed");
    const folder = server.socketDir!;
    await server.kill();
    await server.stop();
    await expectGone(folder);
  });
});

it("goes away when the test process is killed", async () => {
  const base = tmpdir();
  const settings = { port: "5432", listen_addresses: "", fsync: "off" };
  const own = { programs: findPrograms(), copy: false, template: null, owner: findOwner(), password: "p" };
  const config: GuardConfig = { base, settings, ...own };
  const guard = fileURLToPath(new URL("guard-process.mjs", import.meta.url));
  const program = `
    const guard = require("node:child_process").fork(${JSON.stringify(guard)}, [${JSON.stringify(JSON.stringify(config))}]);
    guard.on("message", ({ folder, done }) => {
      if (folder) { console.log(folder); guard.send({ do: "start" }); }
      if (done) console.log("started");
    });`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (bytes) => {
    out += bytes;
  });
  await expect.poll(() => out).toContain("started");
  const folder = out.split("\n")[0]!;
  expect(existsSync(join(folder, "data"))).toBe(true);
  child.kill("SIGKILL");
  await expectGone(folder);
});

it("copies the programs where the server's account cannot read them", async () => {
  const config = {
    programs: findPrograms("embedded"),
    copy: true,
    template: null,
    owner: findOwner(),
    password: "p",
    base: tmpdir(),
  };
  const guard = new Guard({ ...config, settings: { port: "5432", listen_addresses: "" } });
  const folder = await guard.folder;
  await guard.order({ do: "start" });
  expect(existsSync(join(folder, "programs", "bin", "postgres"))).toBe(true);
  await guard.release();
  await expectGone(folder);
});

it("says why a server does not start, and leaves nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "own-"));
  chmodSync(folder, 0o711);
  vi.stubEnv("TMPDIR", folder);
  const failing = startPostgres({ settings: { shared_buffers: "nonsense" } });
  await expect(failing).rejects.toThrow(/did not start: .*invalid value for parameter "shared_buffers"/s);
  expect(readdirSync(folder)).toEqual([]);
});

it("makes the links that the package lacks, also when others do the same", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-links-"));
  mkdirSync(join(folder, "native", "lib"), { recursive: true });
  const link = { source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" };
  writeFileSync(join(folder, "native", "pg-symlinks.json"), JSON.stringify([link, link]));
  makeLinks(folder);
  makeLinks(folder);
  expect(readlinkSync(join(folder, link.target))).toBe("libpq.so.5.18");
});

describe("with one server for a file", () => {
  const postgres = usePostgres();

  it("gives every test a database of its own", async () => {
    const [one, two] = [await postgres().createDatabase(), await postgres().createDatabase()];
    await query(one, "CREATE TABLE mine (n INTEGER)");
    expect(await query(two, "SELECT to_regclass('mine') AS mine")).toEqual([{ mine: null }]);
  });

  it("sorts as people do, not as bytes", async () => {
    const sorted = await query(
      postgres().url,
      "SELECT string_agg(w, '' ORDER BY w) AS w FROM unnest('{B,a,C}'::text[]) w",
    );
    expect(sorted).toEqual([{ w: "aBC" }]);
  });

  it("uses a server that is there already, and removes only its own databases from it", async () => {
    const names = () => query(postgres().url, "SELECT datname FROM pg_database ORDER BY 1");
    const before = await names();
    vi.stubEnv("FLYWHEEL_TEST_POSTGRES", postgres().url);
    server = await startPostgres();
    expect(await query(await server.createDatabase(), "SELECT current_database() AS name")).toHaveLength(1);
    expect(await names()).toHaveLength(before.length + 1);
    await expect(server.restart("fast")).rejects.toThrow("not ours");
    await server.stop();
    expect(await names()).toEqual(before);
  });
});

it("refuses a choice it does not know", async () => {
  vi.stubEnv("FLYWHEEL_TEST_POSTGRES", "mysql");
  await expect(startPostgres()).rejects.toThrow("must be system, embedded or a URL, not mysql");
});
