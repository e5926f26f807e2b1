// An upgrade: servers of two builds on one database. The newer build has another version and one more migration.

import { cpSync, existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { run } from "../support/cli-process.ts";
import { Chance } from "./chance.ts";
import { Deployment } from "./deployment.ts";
import { Learner } from "./learner.ts";
import { ROOT } from "./member.ts";

const NEW_VERSION = "99.0.0";
/** What a migration may do: add. */
const SQL =
  "ALTER TABLE jobs ADD COLUMN note TEXT; ALTER TABLE steps ADD COLUMN note TEXT; CREATE TABLE later_additions (id TEXT)";

let deployment: Deployment;
afterEach(() => deployment.close());

/** The program as it may look later. Returns its folder. */
function newerBuild(): string {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-newer-"));
  for (const name of ["bin", "dist", "models", "openapi.json"]) {
    const from = join(ROOT, name);
    if (name === "bin" || name === "dist") cpSync(from, join(folder, name), { recursive: true });
    else if (existsSync(from)) symlinkSync(from, join(folder, name));
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, version: NEW_VERSION }));
  const file = join(folder, "dist", "store", "migrations.js");
  const migration = JSON.stringify({ name: "later_additions", sqlite: SQL, postgres: SQL });
  const text = readFileSync(file, "utf8").replace(/(export const MIGRATIONS = \[[^;]*)\];/, `$1${migration}];`);
  expect(text).toContain(migration);
  writeFileSync(file, text);
  return folder;
}

async function schemaVersion(): Promise<number> {
  return (await deployment.store.get<{ version: number }>("SELECT version FROM schema_version"))!.version;
}

it("upgrades worker by worker and then server by server while jobs run, and an old one cannot come back", async () => {
  const program = newerBuild();
  deployment = await Deployment.start({ names: ["api-old", "worker-old"] });
  const { store } = deployment;
  const [api, worker] = [deployment.member("api-old"), deployment.member("worker-old")];
  const learner = await Learner.register("agent", deployment.requests, new Chance(1));
  await learner.learn();
  const steps = async () => (await learner.digests(store)).length - 1;

  // the new worker changes the tables under the jobs of the old one
  const newWorker = await deployment.add("worker-new", { program });
  let serves = false;
  const start = newWorker.start().finally(() => {
    serves = true;
  });
  while (!serves) await learner.learn();
  await start;
  expect(await schemaVersion()).toBe(MIGRATIONS.length + 1);

  // both kinds of workers serve both the old API server and each other's jobs
  for (let i = 0; i < 3; i++) await learner.learn();
  const status = await run(["status", "--url", `${api.url}/v1`, "--api-key", deployment.key]);
  expect(status.out).toMatch(new RegExp(`worker +http\\S+ +${NEW_VERSION.replaceAll(".", "\\.")}`));
  expect(status.out).toMatch(/several versions/i);
  expect(await worker.stop()).toBe(0);
  await learner.learn();

  // an old server that restarts now is refused, in one line, and makes nothing
  const late = await deployment.add("api-late");
  expect([await late.tryStart(), late.exitCode]).toEqual([false, 1]);
  const line = late.tail().trimEnd().split("\n").at(-1)!;
  expect(line).toContain(
    `the database has schema version ${MIGRATIONS.length + 1}, newer than this program knows (${MIGRATIONS.length})`,
  );
  expect(existsSync(join(deployment.folder, "api-late"))).toBe(false);

  // a new API server, then the old one goes
  const newApi = await deployment.add("api-new", { program });
  await newApi.start();
  const job = await learner.submit();
  expect(await api.stop()).toBe(0);
  expect(await learner.ended(job)).toMatchObject({ status: "COMPLETED" });
  await learner.learn();
  expect(await steps()).toBe(learner.learnt);
  expect(await deployment.finish(learner.accepted)).toEqual([]);
});
