import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../../test/support/stores.ts";
import { type Amount, ConversationTable, type ReadingRoom } from "./conversations.ts";
import { type NewResponse, ResponseTable, type StoredItem } from "./responses.ts";

const PLENTY = { responses: 1e6, items: 1e6, bytes: 1e9 };

class Room implements ReadingRoom {
  readonly left: Amount;
  constructor(most: Amount = PLENTY) {
    this.left = { ...most };
  }
  take(amount: Partial<Amount>): void {
    for (const name of ["responses", "items", "bytes"] as const) {
      this.left[name] -= amount[name] ?? 0;
      if (this.left[name] < 0) throw new Error(`too many ${name}`);
    }
  }
}

const text = (id: string, length = 5) => ({ id, item: JSON.stringify("x".repeat(length - 2)) });
const row = (id: string, previousId: string | null = null, input: StoredItem[] = [text(`${id}_in0`)]): NewResponse => ({
  ...{ id, previousId, response: "{}", input, output: [text(`${id}_0`)] },
});
/** The response of the ids above. */
const home = (itemId: string) => itemId.split("_")[0]!;
const place = (id: string) => ({ id, responseId: home(id) });

describe.each(STORES)("conversations in %s", (kind) => {
  const open = freshStores(kind);
  const tables = async (now: () => number = () => 1) => {
    const store = await open();
    return {
      store,
      table: new ConversationTable(store, now),
      responses: new ResponseTable(store, { bytes: 1e9, days: 30 }, () => 0),
    };
  };

  it("are read oldest first, by their workspace only", async () => {
    const { table, responses } = await tables();
    await responses.save("mine", row("a"));
    await responses.save("mine", row("b", "a"));
    await responses.save("mine", row("c", "b"));
    await responses.save("theirs", row("x", "a"));
    const chain = await table.chain("mine", "c", new Room());
    expect(chain.map(({ id, previousId }) => [id, previousId])).toEqual([
      ["a", null],
      ["b", "a"],
      ["c", "b"],
    ]);
    const ids = (await table.items("mine", chain))!.map(({ id }) => id);
    expect(ids).toEqual(["a_in0", "a_0", "b_in0", "b_0", "c_in0", "c_0"]);
    expect(await table.chain("theirs", "c", new Room())).toEqual([]);
    // what another workspace has is not reached through a row of one's own
    expect(await table.chain("theirs", "x", new Room())).toMatchObject([{ id: "x", previousId: "a" }]);
    await responses.delete("mine", "b");
    expect(await table.items("mine", chain)).toBeNull();
  });

  it("are not walked further than there is room", async () => {
    const { store, table, responses } = await tables();
    for (let i = 0; i < 200; i++) await responses.save("me", row(`r${i}`, i === 0 ? null : `r${i - 1}`));
    const all = { responses: 200, items: 400, bytes: 2000 };
    expect(await table.chain("me", "r199", new Room(all))).toHaveLength(200);
    for (const name of ["responses", "items", "bytes"] as const) {
      const room = new Room({ ...all, [name]: all[name] - 1 });
      await expect(table.chain("me", "r199", room)).rejects.toThrow(`too many ${name}`);
    }
    let seen = 0;
    const watched: typeof store = {
      ...store,
      all: async (sql, ...params) => {
        const rows = await store.all<never>(sql, ...params);
        seen += rows.length;
        return rows;
      },
    };
    const tight = new Room({ ...all, responses: 10 });
    await expect(new ConversationTable(watched).chain("me", "r199", tight)).rejects.toThrow("too many responses");
    expect(seen).toBe(11);
  });

  it("keep what they read from being the next to go", async () => {
    const minute = 60_000;
    const { store, table, responses } = await tables(() => 10 * minute);
    for (const id of ["a", "unused", "named"]) await responses.save("me", row(id));
    await responses.save("me", row("b", "a"));
    await table.items("me", await table.chain("me", "b", new Room()));
    await table.referenced("me", [place("named_0")], new Room());
    const used = await store.all("SELECT id FROM stored_responses WHERE used_at > 0 ORDER BY id");
    expect(used).toEqual([{ id: "a" }, { id: "b" }, { id: "named" }]);
  });

  it("give items to references, which count as often as they are used", async () => {
    const { table, responses } = await tables();
    await responses.save("me", row("a", null, [text("a_in0", 100), { id: "b_0", item: null }]));
    await responses.save("theirs", row("x", null, [text("x_in0"), text("a_in0", 7)]));
    const wanted = ["a_in0", "a_in0", "a_0", "a_7", "b_0", "x_in0"].map(place);
    const room = new Room({ ...PLENTY, bytes: 205 });
    const found = await table.referenced("me", wanted, room);
    expect([...found.keys()].sort()).toEqual(["a_0", "a_in0"]);
    expect(found.get("a_in0")).toHaveLength(100);
    expect(room.left.bytes).toBe(0);
    await expect(table.referenced("me", wanted, new Room({ ...PLENTY, bytes: 204 }))).rejects.toThrow("too many bytes");
  });

  it("are listed in pages of so many items and bytes", async () => {
    const { table, responses } = await tables();
    const input = [
      text("a_in0", 600_000),
      text("a_in1", 600_000),
      { id: "b_0", item: null },
      { id: "gone_0", item: null },
    ];
    await responses.save("me", row("b"));
    await responses.save("me", row("a", null, input));
    const page = async (limit: number, after: string | null, descending = false) => {
      let bytes = 0;
      const found = await table.page(
        "me",
        { id: "a", inputs: 4 },
        { limit, after, descending },
        (more) => {
          bytes += more;
        },
        home,
      );
      return found && { ids: found.items.map(({ id }) => id), more: found.hasMore, bytes };
    };
    expect(await page(10, null)).toEqual({ ids: ["a_in0"], more: true, bytes: 600_000 });
    expect(await page(10, "a_in0")).toEqual({ ids: ["a_in1", "b_0", "gone_0"], more: false, bytes: 600_005 });
    expect(await page(1, "a_in1")).toEqual({ ids: ["b_0"], more: true, bytes: 5 });
    expect(await page(2, null, true)).toEqual({ ids: ["gone_0", "b_0"], more: true, bytes: 5 });
    expect(await page(2, "gone_0")).toEqual({ ids: [], more: false, bytes: 0 });
    expect(await page(2, "nobody")).toBeNull();
    // the output is no input
    expect(await page(2, "a_0")).toBeNull();
  });

  it("with an id twice are listed to their end", async () => {
    const { table, responses } = await tables();
    const twice = [text("same"), text("same"), text("last")];
    await responses.save("me", row("a", null, twice));
    for (const descending of [false, true]) {
      const seen: string[] = [];
      let after: string | null = null;
      for (let more = true; more; ) {
        const page = await table.page("me", { id: "a", inputs: 3 }, { limit: 1, after, descending }, () => {}, home);
        seen.push(...page!.items.map(({ id }) => id));
        after = seen.at(-1)!;
        more = page!.hasMore && seen.length < 10;
      }
      expect(new Set(seen)).toEqual(new Set(["same", "last"]));
      expect(seen.length).toBeLessThanOrEqual(3);
    }
  });

  it("are bounded as a slow and obvious count says", async () => {
    const { table, responses } = await tables();
    const made: { id: string; previous: number | null; sizes: number[] }[] = [];
    const shape = fc.record({ back: fc.nat(6), sizes: fc.array(fc.integer({ min: 2, max: 40 }), { maxLength: 4 }) });
    for (const [i, { back, sizes }] of fc.sample(shape, { numRuns: 60 }).entries()) {
      const previous = i === 0 || back === 6 ? null : Math.max(0, i - 1 - (back % 3));
      made.push({ id: `p${i}`, previous, sizes });
      const input = sizes.map((size, at) => text(`p${i}_in${at}`, size));
      await responses.save("me", { ...row(`p${i}`), previousId: previous === null ? null : `p${previous}`, input });
    }
    const most = fc.record({ responses: fc.nat(12), items: fc.nat(60), bytes: fc.nat(900) });
    await fc.assert(
      fc.asyncProperty(fc.nat(59), most, async (from, room) => {
        const expected: Amount = { responses: 0, items: 0, bytes: 0 };
        for (let at: number | null = from; at !== null; at = made[at]!.previous) {
          expected.responses++;
          expected.items += made[at]!.sizes.length + 1;
          expected.bytes += made[at]!.sizes.reduce((sum, size) => sum + size, 5);
        }
        const fits = (Object.keys(room) as (keyof Amount)[]).every((name) => expected[name] <= room[name]);
        const read = table.chain("me", `p${from}`, new Room(room));
        if (fits) expect(await read).toHaveLength(expected.responses);
        else await expect(read).rejects.toThrow(/too many/);
      }),
    );
  });
});
