import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../test/stores.ts";
import { ResponseTable, type StoredResponse } from "./response-table.ts";

const row = (id: string, previousId: string | null = null, response = `{"id":"${id}"}`): StoredResponse => ({
  id,
  previousId,
  response,
  input: "[]",
});
const ids = (rows: StoredResponse[]) => rows.map(({ id }) => id);

describe.each(STORES)("responses in %s", (kind) => {
  const open = freshStores(kind);

  it("are read, continued and deleted by their workspace only", async () => {
    const table = new ResponseTable(await open(), { bytes: 1e6, days: 30 });
    await table.save("mine", row("a"));
    await table.save("mine", row("b", "a"));
    await table.save("mine", row("c", "b"));
    await table.save("mine", row("c2", "b"));
    await table.save("theirs", row("x", "a"));
    expect(await table.get("mine", "b")).toEqual(row("b", "a"));
    expect(ids(await table.conversation("mine", "c"))).toEqual(["a", "b", "c"]);
    expect(ids(await table.conversation("mine", "c2"))).toEqual(["a", "b", "c2"]);
    expect(await table.get("theirs", "b")).toBeNull();
    expect(await table.conversation("theirs", "c")).toEqual([]);
    // what another workspace has is not reached through a row of one's own
    expect(ids(await table.conversation("theirs", "x"))).toEqual(["x"]);
    expect(await table.delete("theirs", "a")).toBe(false);
    expect(await table.delete("mine", "a")).toBe(true);
    expect(await table.get("mine", "a")).toBeNull();
    expect(ids(await table.conversation("mine", "c"))).toEqual(["b", "c"]);
  });

  it("go when they are old, unless they were used", async () => {
    const day = 24 * 3600_000;
    let now = 0;
    const table = new ResponseTable(await open(), { bytes: 1e6, days: 10 }, () => now);
    await table.save("me", row("first"));
    await table.save("me", row("second", "first"));
    await table.save("me", row("unused"));
    now = 6 * day;
    await table.conversation("me", "second");
    now = 12 * day;
    await table.save("me", row("new"));
    expect(ids(await table.conversation("me", "second"))).toEqual(["first", "second"]);
    expect(await table.get("me", "unused")).toBeNull();
  });

  it("are bounded for each workspace; the least recently used go first", async () => {
    let now = 0;
    const table = new ResponseTable(await open(), { bytes: 250, days: 10 }, () => now);
    for (const id of ["a", "b", "c", "d"]) {
      now += 60_000;
      await table.save("me", row(id, null, JSON.stringify("x".repeat(96))));
      await table.save("other", row(`${id}-other`, null, "{}"));
    }
    expect(await Promise.all(["a", "b", "c", "d"].map((id) => table.get("me", id)))).toEqual([
      null,
      null,
      expect.objectContaining({ id: "c" }),
      expect.objectContaining({ id: "d" }),
    ]);
    expect(await table.get("other", "a-other")).not.toBeNull();
    expect(table.keeps).toBe(true);
    expect(new ResponseTable(await open(), { bytes: 0, days: 30 }).keeps).toBe(false);
  });
});
