import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { query } from "../../../test/postgres/start-postgres.ts";
import { usePostgres } from "../../../test/postgres/use-postgres.ts";
import { MIGRATIONS, type Migration } from "../migrations.ts";
import { openSqlite } from "../sqlite.ts";
import { migratePostgres } from "./open.ts";

const postgres = usePostgres();
let url: string;
const clients: pg.Client[] = [];

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  clients.push(client);
  return client;
}

beforeEach(async () => {
  url = await postgres().createDatabase();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end();
});

const notes: Migration = { name: "notes", sqlite: "", postgres: "CREATE TABLE notes (text TEXT NOT NULL);" };
const stars: Migration = { name: "stars", sqlite: "", postgres: "ALTER TABLE notes ADD stars BIGINT DEFAULT 0;" };

it("makes the same tables and columns as SQLite", async () => {
  await migratePostgres(await connect(), MIGRATIONS);
  const sqlite = openSqlite(":memory:");
  const tables = (await sqlite.all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'"))
    .map(({ name }) => name)
    .filter((name) => !name.startsWith("sqlite_"));
  const found = await query<{ name: string }>(
    url,
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  expect(found.map(({ name }) => name).sort()).toEqual([...tables, "schema_version"].sort());
  for (const table of tables) {
    const ours = await sqlite.all<{ name: string; required: number }>(
      `SELECT name, "notnull" OR pk > 0 AS required FROM pragma_table_info('${table}') ORDER BY name`,
    );
    const theirs = await query<{ name: string; required: number }>(
      url,
      `SELECT column_name AS name, CASE WHEN is_nullable = 'NO' THEN 1 ELSE 0 END AS required
         FROM information_schema.columns WHERE table_name = '${table}' ORDER BY column_name COLLATE "C"`,
    );
    // SQLite cannot add a required column to rows that are there
    const seq = (columns: typeof ours) => columns.map((c) => (c.name === "seq" ? { ...c, required: 1 } : c));
    expect(theirs, table).toEqual(seq(ours));
  }
  const linguistic = await query(
    url,
    `SELECT table_name, column_name FROM information_schema.columns
       WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
  );
  expect(linguistic).toEqual([]);
  await sqlite.close();
});

it("applies each migration once, also when several servers start at once", async () => {
  const all = await Promise.all([connect(), connect(), connect(), connect()]);
  await Promise.all(all.map((client) => migratePostgres(client, [notes])));
  await all[0]!.query("INSERT INTO notes VALUES ('kept')");
  await Promise.all(all.map((client) => migratePostgres(client, [notes, stars])));
  expect(await query(url, "SELECT * FROM notes")).toEqual([{ text: "kept", stars: "0" }]);
  expect(await query(url, "SELECT version FROM schema_version")).toEqual([{ version: "2" }]);
});

it("refuses a schema that is newer than the program, and changes nothing", async () => {
  const client = await connect();
  await migratePostgres(client, [notes, stars]);
  await expect(migratePostgres(client, [notes])).rejects.toThrow(
    "the database has schema version 2, newer than this program knows (1): start the newer version that wrote it, or choose another --database",
  );
  expect(await query(url, "SELECT version FROM schema_version")).toEqual([{ version: "2" }]);
});

it("leaves the database as it was when a migration fails", async () => {
  const client = await connect();
  const broken: Migration = { name: "broken", sqlite: "", postgres: "CREATE TABLE x (y TEXT); NONSENSE;" };
  await expect(migratePostgres(client, [notes, broken])).rejects.toThrow(
    /^migration 2 \(broken\) failed: syntax error/,
  );
  expect(await query(url, "SELECT to_regclass('notes') AS notes, to_regclass('schema_version') AS version")).toEqual([
    { notes: null, version: null },
  ]);
  await migratePostgres(client, [notes]);
  expect(await query(url, "SELECT version FROM schema_version")).toEqual([{ version: "1" }]);
});
