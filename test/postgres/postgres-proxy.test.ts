// The proxy cuts where it says: the server commits or does not, and the client cannot know.

import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type PostgresProxy, startPostgresProxy } from "./postgres-proxy.ts";
import { query } from "./start-postgres.ts";
import { usePostgres } from "./use-postgres.ts";

const postgres = usePostgres();
let direct: string;
let proxy: PostgresProxy;

beforeEach(async () => {
  direct = await postgres().createDatabase();
  await query(direct, "CREATE TABLE numbers (n INTEGER)");
  proxy = await startPostgresProxy(direct);
});
afterEach(() => proxy.faults.close());

/** Inserts a number in a transaction of its own. */
async function insert(n: number): Promise<void> {
  const client = new pg.Client({ connectionString: proxy.url });
  // Without a listener, a cut connection ends the process.
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query("INSERT INTO numbers VALUES ($1)", [n]);
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
}

async function numbers(): Promise<number[]> {
  return (await query<{ n: number }>(direct, "SELECT n FROM numbers ORDER BY n")).map(({ n }) => n);
}

it("forwards what it has no fault for", async () => {
  await insert(1);
  expect([await numbers(), proxy.faults.cuts]).toEqual([[1], 0]);
});

it("cuts before COMMIT arrives, or after it took effect", async () => {
  proxy.commitFaults.push("before", "after");
  await expect(insert(1)).rejects.toThrow("Connection terminated");
  await expect(insert(2)).rejects.toThrow("Connection terminated");
  await insert(3);
  expect([await numbers(), proxy.faults.cuts]).toEqual([[2, 3], 2]);
});

it("keeps the fault while the server refuses to commit", async () => {
  await query(direct, "ALTER TABLE numbers ADD CONSTRAINT once UNIQUE (n) DEFERRABLE INITIALLY DEFERRED");
  await insert(1);
  proxy.commitFaults.push("after");
  await expect(insert(1)).rejects.toThrow("duplicate key");
  await expect(insert(2)).rejects.toThrow("Connection terminated");
  expect(await numbers()).toEqual([1, 2]);
});

it("reads messages that arrive in pieces", async () => {
  const long = `INSERT INTO numbers SELECT 5 -- ${"x".repeat(300_000)}`;
  const client = new pg.Client({ connectionString: proxy.url });
  await client.connect();
  await client.query("BEGIN");
  await client.query(long);
  await client.query("COMMIT");
  await client.end();
  expect(await numbers()).toEqual([5]);
});

it("refuses, delays and cuts", async () => {
  proxy.faults.refuse = true;
  await expect(insert(1)).rejects.toThrow();
  proxy.faults.refuse = false;
  proxy.faults.delay = 30;
  const before = performance.now();
  await insert(2);
  expect(performance.now() - before).toBeGreaterThan(30 * 2 * 4);
  proxy.faults.delay = 0;
  const client = new pg.Client({ connectionString: proxy.url });
  const lost = new Promise<Error>((resolve) => client.on("error", resolve));
  await client.connect();
  proxy.faults.cutAll();
  expect((await lost).message).toContain("Connection terminated");
  expect(await numbers()).toEqual([2]);
});
