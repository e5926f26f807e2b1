import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { query } from "../../../test/postgres/start-postgres.ts";
import { usePostgres } from "../../../test/postgres/use-postgres.ts";
import { OperatorError } from "../../errors/faults.ts";
import { MIGRATIONS } from "../migrations.ts";
import { openPostgres, shownDatabase } from "./open.ts";

const postgres = usePostgres({ tcp: true });

/** The line that the operator reads. */
async function refusal(url: string, listenUrl: string | null = null): Promise<string> {
  const opening = openPostgres(url, listenUrl).then((store) => store.close());
  const error = await opening.then(
    () => new Error("it opened"),
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(OperatorError);
  expect(error.message).not.toContain("\n");
  expect(error.message).not.toContain("flywheel-test"); // the password
  return error.message;
}

it("says in one line what is wrong with a database", async () => {
  const url = await postgres().createDatabase();
  const where = `cannot use the database ${shownDatabase(url)}: `;
  expect(await refusal(url.replace(/:[^:@]+@/, ":secret@"))).toBe(
    `${where}password authentication failed for user "flywheel": check the user and the password`,
  );
  const other = url.replace(/[^/]+$/, "nothing");
  expect(await refusal(other)).toMatch(/nothing: it does not exist: create it with `createdb nothing`$/);
  const closed = url.replace(/:\d+\//, ":1/");
  expect(await refusal(closed)).toMatch(/127\.0\.0\.1:1\/.*ECONNREFUSED.*: is PostgreSQL running there\?$/);
  expect(await refusal(url.replace("127.0.0.1", "no-such-host.invalid"))).toMatch(
    /no-such-host\.invalid.*: check the host$/,
  );
  expect(await refusal(url, closed)).toMatch(/127\.0\.0\.1:1\/.*: is PostgreSQL running there\?$/);
});

it("names the database that a URL without a name means", async () => {
  const url = await postgres().createDatabase();
  expect(await refusal(url.replace(/\/[^/]+$/, ""))).toMatch(
    /: it does not exist: create it with `createdb flywheel`$/,
  );
});

it("says that what answers is no PostgreSQL", async () => {
  const server = createServer((socket) =>
    socket
      .on("error", () => {})
      .resume()
      .end("HTTP/1.1 400 Bad Request\r\n\r\n"),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `postgres://me@127.0.0.1:${(server.address() as AddressInfo).port}/x`;
  const fix = /: check the host and the port: no PostgreSQL answers there$/;
  expect(await refusal(url)).toMatch(fix);
  expect(await refusal(`${url}?sslmode=require`)).toMatch(fix);
  await new Promise((resolve) => server.close(resolve));
});

it("refuses a schema that is newer than the program, and makes nothing", async () => {
  const url = await postgres().createDatabase();
  await query(url, "CREATE TABLE schema_version (version BIGINT NOT NULL)");
  await query(url, "INSERT INTO schema_version VALUES (99)");
  const line = await refusal(url);
  expect(line).toContain(`the database has schema version 99, newer than this program knows (${MIGRATIONS.length})`);
  expect(await query(url, "SELECT to_regclass('jobs') AS jobs")).toEqual([{ jobs: null }]);
});

it("refuses a user who may not create tables", async () => {
  const url = await postgres().createDatabase();
  await query(url, "CREATE ROLE reader LOGIN PASSWORD 'flywheel-test'");
  const line = await refusal(url.replace("flywheel:", "reader:"));
  expect(line).toMatch(/permission denied for schema public: its user must be allowed to create tables$/);
  await (await openPostgres(url)).close();
  // one that may use the tables is enough once they are there
  await query(url, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader");
  const store = await openPostgres(url.replace("flywheel:", "reader:"));
  expect(await store.all("SELECT id FROM jobs")).toEqual([]);
  await store.close();
});
