import { describe, expect, it } from "vitest";
import { freshStores, STORES, statementsOf } from "../../../test/support/stores.ts";
import { MIGRATIONS } from "../migrations.ts";
import { bytesOf, type NewResponse, ResponseTable, type StoredItem } from "./responses.ts";

const items = (...texts: string[]): StoredItem[] =>
  texts.map((text, i) => ({ id: `i${i}`, item: JSON.stringify(text) }));
const row = (id: string, fields: Partial<NewResponse> = {}): NewResponse => ({
  ...{ id, previousId: null, response: `{"id":"${id}"}`, input: items("in"), output: items("out") },
  ...fields,
});

describe.each(STORES)("responses in %s", (kind) => {
  const open = freshStores(kind);

  it("are read and deleted by their workspace only", async () => {
    const table = new ResponseTable(await open(), { bytes: 1e6, days: 30 });
    await table.save("mine", row("a"));
    expect(await table.get("mine", "a")).toBe('{"id":"a"}');
    expect(await table.sizeOf("mine", "a")).toEqual({ bytes: 10, inputs: 1 });
    expect(await table.get("theirs", "a")).toBeNull();
    expect(await table.sizeOf("theirs", "a")).toBeNull();
    expect(await table.delete("theirs", "a")).toBe(false);
    expect(await table.delete("mine", "a")).toBe(true);
    expect(await table.get("mine", "a")).toBeNull();
    expect(await table.used("mine")).toBe(0);
  });

  it("go when they are old", async () => {
    const day = 24 * 3600_000;
    let now = 0;
    const store = await open();
    const table = new ResponseTable(store, { bytes: 1e7, days: 10 }, () => now);
    for (let i = 0; i < 120; i++) await table.save(`owner${i % 3}`, row(`old${i}`));
    now = 12 * day;
    await table.save("owner0", row("new"));
    expect(await store.all("SELECT id FROM stored_responses")).toEqual([{ id: "new" }]);
    expect(await store.all("SELECT response_id FROM stored_items")).toHaveLength(2);
    expect(await table.used("owner0")).toBe(bytesOf(row("new")));
    expect(await table.used("owner1")).toBe(0);
  });

  it("never take more than their workspace has; the least recently used go first", async () => {
    let now = 0;
    const size = bytesOf(row("a"));
    const table = new ResponseTable(await open(), { bytes: 2 * size, days: 10 }, () => now++);
    await table.save("other", row("other"));
    for (const id of ["a", "b", "c", "d"]) {
      expect(await table.save("me", row(id))).toBe(true);
      expect(await table.used("me")).toBeLessThanOrEqual(2 * size);
    }
    const left = await Promise.all(["a", "b", "c", "d"].map((id) => table.get("me", id)));
    expect(left.map((text) => text !== null)).toEqual([false, false, true, true]);
    expect(await table.get("other", "other")).not.toBeNull();
    // one that could never fit makes no room
    expect(await table.save("me", row("large", { response: "x".repeat(2 * size) }))).toBe(false);
    expect(await table.get("me", "d")).not.toBeNull();
    expect(table.keeps).toBe(true);
    expect(new ResponseTable(await open(), { bytes: 0, days: 30 }).keeps).toBe(false);
  });

  it("are counted right when many are saved and deleted at once", async () => {
    const store = await open();
    const most = 20 * bytesOf(row("00"));
    const table = new ResponseTable(store, { bytes: most, days: 10 });
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        await table.save("me", row(`${10 + i}`));
        if (i % 3 === 0) await table.delete("me", `${10 + i}`);
      }),
    );
    const [sum] = await store.all<{ bytes: number }>(
      "SELECT CAST(SUM(bytes) AS INTEGER) AS bytes FROM stored_responses",
    );
    expect(await table.used("me")).toBe(sum!.bytes);
    expect(sum!.bytes).toBeLessThanOrEqual(most);
  });

  it("with thousands of items are kept whole", async () => {
    const store = await open();
    const table = new ResponseTable(store, { bytes: 1e7, days: 10 });
    const input = items(...Array.from({ length: 5000 }, (_, i) => `${i}`));
    await table.save("me", row("a", { input }));
    expect(await table.sizeOf("me", "a")).toMatchObject({ inputs: 5000 });
    const stored = await store.all<StoredItem>(
      "SELECT item_id AS id, item FROM stored_items ORDER BY position LIMIT 5000",
    );
    expect(stored).toEqual(input);
  });

  it("of the version before are taken over, but not those that are too large to continue", async () => {
    const at = MIGRATIONS.findIndex(({ name }) => name === "items of stored responses");
    const folderStore = await open(MIGRATIONS.slice(0, at));
    const input = JSON.stringify([{ type: "message", role: "user", content: "hé\u0000", id: "m_0" }]);
    const response = JSON.stringify({
      id: "a",
      output: [
        { id: "o_0", type: "message" },
        { id: "o_1", type: "message" },
      ],
    });
    const insert = `INSERT INTO responses (id, owner, previous_id, used_at, bytes, response, input)
      VALUES (?1, 'me', ?2, 5, ?3, ?4, ?5)`;
    await folderStore.run(insert, "a", null, 100, response, input);
    await folderStore.run(insert, "b", "a", 2 ** 26, response, input);
    for (const sql of statementsOf(kind, MIGRATIONS[at]!)) await folderStore.run(sql);
    const table = new ResponseTable(folderStore, { bytes: 1e6, days: 10 }, () => 6);
    expect(await table.get("me", "a")).toBe(response);
    expect(await table.get("me", "b")).toBeNull();
    expect(await table.sizeOf("me", "a")).toEqual({ bytes: response.length, inputs: 1 });
    const stored = await folderStore.all("SELECT item_id AS id, position, item FROM stored_items ORDER BY position");
    expect(stored).toEqual([
      { id: "m_0", position: 0, item: (kind === "SQLite" ? input : input.replace("\\u0000", "\\ufffd")).slice(1, -1) },
      { id: "o_0", position: 1, item: '{"id":"o_0","type":"message"}' },
      { id: "o_1", position: 2, item: '{"id":"o_1","type":"message"}' },
    ]);
    expect(await table.used("me")).toBeGreaterThan(response.length + input.length);
    expect(await folderStore.all("SELECT id FROM responses")).toEqual([]);
  });
});
