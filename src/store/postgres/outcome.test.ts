import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { usePostgres } from "../../../test/postgres/use-postgres.ts";
import { THIS_TRANSACTION, type TransactionId, tookEffect } from "./outcome.ts";

const postgres = usePostgres();

let url: string;
const clients: pg.Client[] = [];
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  clients.push(client);
  return client;
}
/** A transaction that has only its number. Nothing of it has reached the disk. */
async function begin(): Promise<{ client: pg.Client; id: TransactionId }> {
  const client = await connect();
  await client.query("BEGIN");
  return { client, id: (await client.query<TransactionId>(THIS_TRANSACTION)).rows[0]! };
}
async function ask(query: pg.QueryConfig): Promise<unknown[]> {
  const client = await connect();
  return (await client.query(query)).rows;
}

beforeEach(async () => {
  url = await postgres().createDatabase();
});
afterEach(async () => {
  // those of a server that crashed do not end in an orderly way
  for (const client of clients.splice(0)) await client.end().catch(() => {});
});

it("waits for the end of a transaction that still goes on", async () => {
  for (const [end, expected] of [
    ["COMMIT", true],
    ["ROLLBACK", false],
  ] as const) {
    const { client, id } = await begin();
    let asked = 0;
    const answer = tookEffect(id, (query) => {
      asked++;
      return ask(query);
    });
    await expect.poll(() => asked).toBeGreaterThan(2);
    await client.query(end);
    expect(await answer).toBe(expected);
  }
});

it("tells after an orderly restart too", async () => {
  const { client, id } = await begin();
  await client.query("COMMIT");
  const { id: open } = await begin();
  await postgres().restart("fast");
  expect(await tookEffect(id, ask)).toBe(true);
  expect(await tookEffect(open, ask)).toBe(false);
});

it("does not take another transaction that got the same number after a crash for this one", async () => {
  const { id } = await begin();
  await postgres().restart("immediate");
  expect(await tookEffect(id, ask)).toBe(false);
  let again: Awaited<ReturnType<typeof begin>>;
  do {
    again = await begin();
    if (again.id.number !== id.number) await again.client.query("COMMIT");
  } while (BigInt(again.id.number) < BigInt(id.number));
  expect(again.id.number).toBe(id.number);
  expect(again.id.life).not.toBe(id.life);
  expect(await tookEffect(id, ask)).toBe(false);
  await again.client.query("COMMIT");
  expect(await tookEffect(again.id, ask)).toBe(true);
  await expect(tookEffect(id, ask)).rejects.toThrow(`cannot tell how transaction ${id.number} ended`);
});
