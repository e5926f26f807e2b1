// What holds for every store.

import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../test/support/stores.ts";
import type { Migration } from "./migrations.ts";
import type { Statements, Store } from "./store.ts";

const TABLE = "CREATE TABLE notes (text TEXT NOT NULL UNIQUE, stars BIGINT)";
const NOTES: Migration[] = [{ name: "notes", sqlite: TABLE, postgres: TABLE }];
const INSERT = "INSERT INTO notes (text) VALUES (?1)";

async function texts(store: Store): Promise<string[]> {
  return (await store.all<{ text: string }>("SELECT text FROM notes ORDER BY text")).map(({ text }) => text);
}

describe.each(STORES)("%s", (kind) => {
  const fresh = freshStores(kind);

  it("writes, counts, reads and gives numbers as numbers", async () => {
    const store = await fresh(NOTES);
    expect(await store.run("INSERT INTO notes VALUES (?1, ?2)", "a", 2 ** 40)).toBe(1);
    expect(await store.run("INSERT INTO notes VALUES (?1, ?2)", "b", null)).toBe(1);
    expect(await store.get("SELECT text, stars FROM notes WHERE text = ?1", "a")).toEqual({
      text: "a",
      stars: 2 ** 40,
    });
    expect(await store.get("SELECT CAST(SUM(stars) AS BIGINT) AS sum FROM notes")).toEqual({ sum: 2 ** 40 });
    expect(await store.get("SELECT text FROM notes WHERE text = ?1", "c")).toBeUndefined();
    expect(await store.run("DELETE FROM notes")).toBe(2);
  });

  it("uses a parameter twice, and reads rows that a write returns", async () => {
    const store = await fresh(NOTES);
    await store.transaction(async (tx) => {
      const rows = await tx.all("INSERT INTO notes VALUES (?1, 7) RETURNING text, stars", "x");
      expect(rows).toEqual([{ text: "x", stars: 7 }]);
    });
    const sql = "SELECT text FROM notes WHERE (CAST(?1 AS TEXT) IS NULL OR text = ?1)";
    expect([await store.all(sql, "x"), await store.all(sql, null), await store.all(sql, "y")]).toEqual([
      [{ text: "x" }],
      [{ text: "x" }],
      [],
    ]);
  });

  it("knows the row locks of a queue", async () => {
    const store = await fresh(NOTES);
    for (const text of ["a", "b"]) await store.run(INSERT, text);
    const claim = `UPDATE notes SET stars = 1 WHERE text =
      (SELECT text FROM notes WHERE stars IS NULL ORDER BY text LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING text`;
    const rows = await Promise.all([1, 2, 3].map(() => store.transaction((tx) => tx.get<{ text: string }>(claim))));
    expect(rows.map((row) => row?.text).sort()).toEqual(["a", "b", undefined]);
  });

  it("rolls back a failed transaction completely and stays usable", async () => {
    const store = await fresh(NOTES);
    const failing = store.transaction(async (tx) => {
      await tx.run(INSERT, "lost");
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await store.transaction((tx) => tx.run(INSERT, "kept"), { relaxed: true })).toBe(1);
    expect(await texts(store)).toEqual(["kept"]);
  });

  it("fails with a row that is there already, outside and inside a transaction", async () => {
    const store = await fresh(NOTES);
    await store.run(INSERT, "a");
    await expect(store.run(INSERT, "a")).rejects.toThrow(/unique/i);
    await expect(store.transaction((tx) => tx.run(INSERT, "a"))).rejects.toThrow(/unique/i);
    expect(await texts(store)).toEqual(["a"]);
  });

  it("runs transactions as if one came after the other", async () => {
    const store = await fresh(NOTES);
    const limited = (text: string) =>
      store.transaction(async (tx) => {
        const { count } = (await tx.get<{ count: number }>("SELECT CAST(COUNT(*) AS BIGINT) AS count FROM notes"))!;
        if (count < 3) await tx.run(INSERT, text);
        return count < 3;
      });
    const made = await Promise.all(Array.from({ length: 8 }, (_, i) => limited(`n${i}`)));
    expect([made.filter((yes) => yes).length, (await texts(store)).length]).toEqual([3, 3]);
  });

  it("refuses what a transaction did not await", async () => {
    const store = await fresh(NOTES);
    let kept: Statements | null = null;
    await store.transaction(async (tx) => {
      kept = tx;
    });
    await expect(kept!.run(INSERT, "late")).rejects.toThrow("await every call inside it");
    expect(await texts(store)).toEqual([]);
  });

  it("ends with the calls that were made before it was closed", async () => {
    const store = await fresh(NOTES);
    const before = store.transaction(async (tx) => {
      await new Promise((resolve) => setImmediate(resolve));
      return tx.run(INSERT, "kept");
    });
    const reads = Array.from({ length: 20 }, () => store.get("SELECT 1 AS one"));
    const closing = [store.close(), store.close()];
    const after = store.run(INSERT, "too late");
    await expect(after).rejects.toThrow("the database is closed");
    expect([await before, ...(await Promise.all(reads))]).toEqual([1, ...reads.map(() => ({ one: 1 }))]);
    await Promise.all(closing);
    await expect(store.get("SELECT 1")).rejects.toThrow("the database is closed");
  });

  it("passes hints to those who listen", async () => {
    const store = await fresh(NOTES);
    const heard: string[] = [];
    const stop = store.listen("jobs", (payload) => payload !== "" && heard.push(payload));
    // PostgreSQL needs a moment to listen
    await expect
      .poll(async () => {
        await store.transaction(() => store.notify("jobs", "a"));
        return heard;
      })
      .toContain("a");
    await store.notify("others", "b");
    stop();
    await store.notify("jobs", "c");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(new Set(heard)).toEqual(new Set(["a"]));
  });
});
