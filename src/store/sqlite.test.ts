import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MIGRATIONS } from "./migrations.ts";
import { openSqlite } from "./sqlite.ts";
import type { Store } from "./store.ts";
import { ModelTable } from "./tables/models.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const notes = { name: "notes", sqlite: "CREATE TABLE notes (text TEXT NOT NULL);" };
const stars = { name: "stars", sqlite: "ALTER TABLE notes ADD COLUMN stars INTEGER NOT NULL DEFAULT 0;" };

describe("store", () => {
  it("keeps committed rows when it is opened again, in WAL mode", async () => {
    const file = join(folder, "deep", "a.db");
    const first = openSqlite(file, [notes]);
    expect((await first.get<{ journal_mode: string }>("PRAGMA journal_mode"))?.journal_mode).toBe("wal");
    expect(await first.run("INSERT INTO notes VALUES (?1)", "kept")).toBe(1);
    await first.close();
    const second = openSqlite(file, [notes, stars]);
    expect(await second.all("SELECT text, stars FROM notes")).toEqual([{ text: "kept", stars: 0 }]);
    await second.close();
  });

  it("rejects a newer database and does not apply a failed migration", async () => {
    const file = join(folder, "a.db");
    await openSqlite(file, [notes, stars]).close();
    expect(() => openSqlite(file, [notes])).toThrow(/newer than this program knows/);

    const other = join(folder, "b.db");
    expect(() => openSqlite(other, [notes, { name: "broken", sqlite: "CREATE TABLE x (y); NONSENSE;" }])).toThrow(
      /^migration 2 \(broken\) failed: near "NONSENSE": syntax error/,
    );
    const store = openSqlite(other, [notes]);
    expect(await store.get("SELECT name FROM sqlite_master WHERE name = 'x'")).toBeUndefined();
    await store.close();
  });

  it("binds a single null and does not keep a read open after `get`", async () => {
    const store = openSqlite(join(folder, "c.db"), [{ name: "n", sqlite: "CREATE TABLE n (x);" }]);
    await store.run("INSERT INTO n VALUES (?1)", null);
    await store.run("INSERT INTO n VALUES (?1)", 2);
    expect(await store.get("SELECT x FROM n")).toEqual({ x: null });
    const other = openSqlite(join(folder, "c.db"), [{ name: "n", sqlite: "" }]);
    await other.run("DELETE FROM n");
    expect(await store.get("SELECT x FROM n")).toBeUndefined();
    await other.close();
    await store.close();
  });

  it("deletes jobs and events of models that were deleted by an older version", async () => {
    const file = join(folder, "d.db");
    const before = openSqlite(file, MIGRATIONS.slice(0, 2));
    await before.run(`INSERT INTO models VALUES ('kept', 'o', 'e', 'p', 'n', 'b', 1, 1, 1, '')`);
    for (const model of ["kept", "deleted"]) {
      const values = `'job of ${model}', '${model}', 'o', 'rl', 'COMPLETED', '{}', '', ''`;
      await before.run(
        `INSERT INTO jobs (id, model_id, owner, kind, status, config, created_at, updated_at) VALUES (${values})`,
      );
      await before.run(`INSERT INTO job_events (id, job_id, type, data, created_at)
        VALUES ('event of ${model}', 'job of ${model}', 'training_ended', '{}', '')`);
    }
    await before.close();
    const store = openSqlite(file);
    expect(await store.all("SELECT id FROM jobs")).toEqual([{ id: "job of kept" }]);
    expect(await store.all("SELECT id FROM job_events")).toEqual([{ id: "event of kept" }]);
    await store.close();
  });

  it("copies the reward spread from steps to their jobs", async () => {
    const file = join(folder, "e.db");
    const before = openSqlite(file, MIGRATIONS.slice(0, 3));
    await before.run(`INSERT INTO models VALUES ('m', 'o', 'e', 'p', 'n', 'b', 1, 1, 3, '')`);
    for (const step of [1, 2]) {
      await before.run(
        `INSERT INTO jobs (id, model_id, owner, kind, status, config, to_step, created_at, updated_at)
         VALUES ('job ${step}', 'm', 'o', 'rl', 'COMPLETED', '{}', ${step}, '', '')`,
      );
    }
    const metrics = JSON.stringify({ "train/reward_std_dev": 0.25 });
    await before.run("INSERT INTO steps VALUES ('s', 'm', 1, 'job 1', 1, ?1, '')", metrics);
    await before.close();
    const store = openSqlite(file);
    expect(await store.all("SELECT id, reward_std_dev FROM jobs ORDER BY seq")).toEqual([
      { id: "job 1", reward_std_dev: 0.25 },
      { id: "job 2", reward_std_dev: null },
    ]);
    await store.close();
  });

  it("gives the models of an older file their order, and new ones the numbers after", async () => {
    const file = join(folder, "f.db");
    const before = openSqlite(file, MIGRATIONS.slice(0, 5));
    for (const id of ["c", "x", "a", "y", "b"]) {
      await before.run("INSERT INTO models VALUES (?1, 'o', 'e', 'p', ?1, 'b', 1, 1, 1, '')", id);
      await before.run("INSERT INTO steps VALUES (?1, ?1, 0, NULL, 1, '{}', '')", id);
    }
    await before.run("DELETE FROM models WHERE id IN ('x', 'y')");
    await before.close();
    const store = openSqlite(file);
    const models = new ModelTable(store);
    const order = async () => (await models.all()).map(({ id }) => id);
    expect(await order()).toEqual(["c", "a", "b"]);
    expect(await models.steps("a")).toHaveLength(1);
    const row = { owner: "o", entity: "e", project: "p", baseModel: "b", loraRank: 1, loraAlpha: 1, nextStep: 0 };
    await store.run("VACUUM"); // gives the rows other rowids
    for (const id of ["z", "d"]) await models.insert({ ...row, id, name: id });
    expect(await order()).toEqual(["c", "a", "b", "z", "d"]);
    expect((await models.list("o", {}, "b", 10)).map(({ id }) => id)).toEqual(["z", "d"]);
    expect((await models.newestNamed("o", "d"))!.id).toBe("d");
    await store.close();
  });

  it("applies the real schema", async () => {
    const store = openSqlite(":memory:");
    expect((await store.get<{ user_version: number }>("PRAGMA user_version"))?.user_version).toBe(MIGRATIONS.length);
    await store.close();
  });
});

describe("turns", () => {
  const insert = "INSERT INTO notes VALUES (?1)";
  const texts = async (store: Store) =>
    (await store.all<{ text: string }>("SELECT text FROM notes")).map((n) => n.text);
  /** A promise and the function that resolves it. */
  const gate = () => {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    return { open, opened };
  };

  it("make calls wait for an open transaction, in the order in which they came", async () => {
    const store = openSqlite(":memory:", [notes]);
    const { open, opened } = gate();
    const order: string[] = [];
    const told = (name: string, call: Promise<unknown>) => call.then(() => order.push(name));
    const calls = [
      told(
        "transaction",
        store.transaction(async (tx) => {
          await tx.run(insert, "first");
          await opened;
          await tx.run(insert, "second");
        }),
      ),
      told("run", store.run(insert, "third")),
      told(
        "other",
        store.transaction((tx) => tx.run(insert, "fourth")),
      ),
      told(
        "get",
        store.get("SELECT text FROM notes").then((row) => expect(row).toEqual({ text: "first" })),
      ),
      told("last", store.run(insert, "fifth")),
    ];
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(order).toEqual([]);
    open();
    await Promise.all(calls);
    expect(order).toEqual(["transaction", "run", "other", "get", "last"]);
    expect(await texts(store)).toEqual(["first", "second", "third", "fourth", "fifth"]);
    await store.close();
  });

  it("go on after a transaction that fails, without its rows", async () => {
    const store = openSqlite(":memory:", [notes]);
    const failing = store.transaction(async (tx) => {
      await tx.run(insert, "lost");
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error("no");
    });
    const waiting = [store.run(insert, "a"), store.transaction((tx) => tx.run(insert, "b"))];
    await expect(failing).rejects.toThrow("no");
    await Promise.all(waiting);
    expect(await texts(store)).toEqual(["a", "b"]);
    await store.close();
  });

  it("end a transaction that waits for itself", async () => {
    const store = openSqlite(":memory:", [notes], 50);
    const stuck = store.transaction(async (tx) => {
      await tx.run(insert, "lost");
      await store.run(insert, "outside");
    });
    await expect(stuck).rejects.toThrow("does it call the store instead of its tx?");
    expect(await texts(store)).toEqual(["outside"]);
    await store.close();
  });
});
