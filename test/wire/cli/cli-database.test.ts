// `--database` as an operator types it.

import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { claimStorage, FolderMarker } from "../../../src/training/files/claim-storage.ts";
import { query } from "../../postgres/start-postgres.ts";
import { usePostgres } from "../../postgres/use-postgres.ts";
import { MODEL, run, serve } from "../../support/cli-process.ts";
import { looseFetch } from "../../support/test-server.ts";

const postgres = usePostgres({ tcp: true });
const PASSWORD = "flywheel-test";

it("serves and manages tokens in a PostgreSQL database, and never shows its password", async () => {
  const url = await postgres().createDatabase();
  const env = { FLYWHEEL_DATABASE: url };
  const made = await run(["tokens", "create", "--name", "ci", "--json"], env);
  expect(made).toMatchObject({ code: 0, err: "" });
  const { token, id } = JSON.parse(made.out);
  expect((await run(["tokens", "list", "--database", url])).out).toMatch(new RegExp(`${id} .* valid +ci +ci`));

  const data = mkdtempSync(join(tmpdir(), "flywheel-cli-"));
  const served = await serve(["--model", MODEL, "--port", "0", "--data", data], env);
  const get = () => looseFetch(`${served.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  expect((await get()).status).toBe(200);
  expect(existsSync(join(data, "flywheel.db"))).toBe(false);
  expect((await run(["tokens", "revoke", "ci"], env)).out).toBe(`revoked ${id} (ci)\n`);
  expect((await get()).status).toBe(401);
  served.process.kill("SIGTERM");
  expect(await served.exit).toBe(0);
  expect(served.out() + served.err()).not.toContain(`:${PASSWORD}`);
  expect(served.err()).toContain("***");
});

it("refuses a database that it cannot use, in one line, and makes nothing", async () => {
  const url = await postgres().createDatabase();
  const cases = [
    ["mysql://root@localhost/x", /--database must look like postgres:\/\/USER:PASSWORD@HOST:5432\/NAME$/],
    [url.replace(PASSWORD, "wrong-one"), /password authentication failed .*check the user and the password$/],
    [url.replace(/:\d+\//, ":1/"), /is PostgreSQL running there\?$/],
    [`${url}_missing`, /it does not exist: create it with `createdb /],
  ] as const;
  for (const [database, line] of cases) {
    const data = join(mkdtempSync(join(tmpdir(), "flywheel-cli-")), "new");
    for (const command of [
      ["serve", "--model", MODEL, "--data", data],
      ["tokens", "list"],
    ]) {
      const { code, out, err } = await run([...command, "--database", database]);
      const last = err.trimEnd().split("\n").at(-1)!;
      expect([code, out, last]).toEqual([1, "", expect.stringMatching(line)]);
      expect(err).not.toMatch(/:flywheel-test@|wrong-one|\n +at /);
    }
    expect(existsSync(data)).toBe(false);
  }
  expect(await query(url, "SELECT to_regclass('jobs') AS jobs")).toEqual([{ jobs: null }]);
});

it("refuses a newer schema and a folder that is not shared, in one line, and makes nothing", async () => {
  const folder = () => mkdtempSync(join(tmpdir(), "flywheel-cli-"));
  const [newer, url, other] = [
    await postgres().createDatabase(),
    await postgres().createDatabase(),
    await postgres().createDatabase(),
  ];
  await query(newer, "CREATE TABLE schema_version (version BIGINT NOT NULL)");
  await query(newer, "INSERT INTO schema_version VALUES (99)");
  const [shared, foreign, local] = [folder(), folder(), folder()];
  for (const [database, place] of [
    [url, shared],
    [other, foreign],
  ] as const) {
    const store = await openPostgres(database);
    await claimStorage(new FolderMarker(place), store);
    await store.close();
  }
  const cases = [
    [newer, shared, /schema version 99, newer than this program knows \(\d+\): start the newer version/],
    [url, join(shared, "missing"), /--storage .*missing does not exist: make the folder, or mount it there$/],
    [url, local, /is not the folder with the files of this database: .*Mount the same shared folder/],
    [url, foreign, /belongs to another database: choose another folder/],
  ] as const;
  for (const [database, storage, line] of cases) {
    const data = join(folder(), "new");
    const options = ["--data", data, "--storage", storage, "--database", database];
    const { code, out, err } = await run(["serve", "--model", MODEL, ...options]);
    const last = err.trimEnd().split("\n").at(-1)!;
    expect([code, out, last]).toEqual([1, "", expect.stringMatching(line)]);
    expect(err).not.toMatch(/:flywheel-test@|\n +at /);
    expect(existsSync(data)).toBe(false);
  }
  expect(readdirSync(local)).toEqual([]);
  expect(readdirSync(shared)).toEqual(readdirSync(foreign));
  expect(await query(newer, "SELECT to_regclass('jobs') AS jobs")).toEqual([{ jobs: null }]);
});
