import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "./db.ts";
import { MIGRATIONS } from "./migrations.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const notes = { name: "notes", sql: "CREATE TABLE notes (text TEXT NOT NULL);" };
const stars = { name: "stars", sql: "ALTER TABLE notes ADD COLUMN stars INTEGER NOT NULL DEFAULT 0;" };

describe("store", () => {
  it("keeps committed rows when it is opened again, in WAL mode", () => {
    const file = join(folder, "deep", "a.db");
    const first = openStore(file, [notes]);
    expect(first.get<{ journal_mode: string }>("PRAGMA journal_mode")?.journal_mode).toBe("wal");
    expect(first.run("INSERT INTO notes VALUES (?)", "kept")).toBe(1);
    first.close();
    const second = openStore(file, [notes, stars]);
    expect(second.all("SELECT text, stars FROM notes")).toEqual([{ text: "kept", stars: 0 }]);
    second.close();
  });

  it("rolls back a failed transaction completely and stays usable", () => {
    const store = openStore(":memory:", [notes]);
    expect(() =>
      store.transaction(() => {
        store.run("INSERT INTO notes VALUES (?)", "lost");
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(store.transaction(() => store.run("INSERT INTO notes VALUES (?)", "kept"))).toBe(1);
    expect(store.all("SELECT text FROM notes")).toEqual([{ text: "kept" }]);
    store.close();
  });

  it("rejects a newer database and does not apply a failed migration", () => {
    const file = join(folder, "a.db");
    openStore(file, [notes, stars]).close();
    expect(() => openStore(file, [notes])).toThrow(/newer than this program knows/);

    const other = join(folder, "b.db");
    expect(() => openStore(other, [notes, { name: "broken", sql: "CREATE TABLE x (y); NONSENSE;" }])).toThrow(
      /migration 2 \(broken\)/,
    );
    const store = openStore(other, [notes]);
    expect(store.get("SELECT name FROM sqlite_master WHERE name = 'x'")).toBeUndefined();
    store.close();
  });

  it("binds a single null and does not keep a read open after `get`", () => {
    const store = openStore(join(folder, "c.db"), [{ name: "n", sql: "CREATE TABLE n (x);" }]);
    store.run("INSERT INTO n VALUES (?)", null);
    store.run("INSERT INTO n VALUES (?)", 2);
    expect(store.get("SELECT x FROM n")).toEqual({ x: null });
    const other = openStore(join(folder, "c.db"), [{ name: "n", sql: "" }]);
    other.run("DELETE FROM n");
    expect(store.get("SELECT x FROM n")).toBeUndefined();
    other.close();
    store.close();
  });

  it("deletes jobs and events of models that were deleted by an older version", () => {
    const file = join(folder, "d.db");
    const before = openStore(file, MIGRATIONS.slice(0, 2));
    before.run(`INSERT INTO models VALUES ('kept', 'o', 'e', 'p', 'n', 'b', 1, 1, 1, '')`);
    for (const model of ["kept", "deleted"]) {
      const values = `'job of ${model}', '${model}', 'o', 'rl', 'COMPLETED', '{}', '', ''`;
      before.run(
        `INSERT INTO jobs (id, model_id, owner, kind, status, config, created_at, updated_at) VALUES (${values})`,
      );
      before.run(`INSERT INTO job_events (id, job_id, type, data, created_at)
        VALUES ('event of ${model}', 'job of ${model}', 'training_ended', '{}', '')`);
    }
    before.close();
    const store = openStore(file);
    expect(store.all("SELECT id FROM jobs")).toEqual([{ id: "job of kept" }]);
    expect(store.all("SELECT id FROM job_events")).toEqual([{ id: "event of kept" }]);
    store.close();
  });

  it("copies the reward spread from steps to their jobs", () => {
    const file = join(folder, "e.db");
    const before = openStore(file, MIGRATIONS.slice(0, 3));
    before.run(`INSERT INTO models VALUES ('m', 'o', 'e', 'p', 'n', 'b', 1, 1, 3, '')`);
    for (const step of [1, 2]) {
      before.run(
        `INSERT INTO jobs (id, model_id, owner, kind, status, config, to_step, created_at, updated_at)
         VALUES ('job ${step}', 'm', 'o', 'rl', 'COMPLETED', '{}', ${step}, '', '')`,
      );
    }
    const metrics = JSON.stringify({ "train/reward_std_dev": 0.25 });
    before.run("INSERT INTO steps VALUES ('s', 'm', 1, 'job 1', 1, ?, '')", metrics);
    before.close();
    const store = openStore(file);
    expect(store.all("SELECT id, reward_std_dev FROM jobs ORDER BY seq")).toEqual([
      { id: "job 1", reward_std_dev: 0.25 },
      { id: "job 2", reward_std_dev: null },
    ]);
    store.close();
  });

  it("applies the real schema", () => {
    const store = openStore(":memory:");
    expect(store.get<{ user_version: number }>("PRAGMA user_version")?.user_version).toBe(MIGRATIONS.length);
    store.close();
  });
});
