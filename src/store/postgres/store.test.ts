// What only PostgreSQL can do to a store: refuse, restart, lose connections, and end one of two transactions.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PostgresProxy, startPostgresProxy } from "../../../test/postgres/postgres-proxy.ts";
import { query } from "../../../test/postgres/start-postgres.ts";
import { usePostgres } from "../../../test/postgres/use-postgres.ts";
import { CommitUnknown, isStoreUnreachable, StoreUnreachable } from "../../errors/faults.ts";
import type { Migration } from "../migrations.ts";
import type { Statements, Store } from "../store.ts";
import { openPostgres } from "./open.ts";

const postgres = usePostgres();
const NOTES: Migration[] = [
  { name: "notes", sqlite: "", postgres: "CREATE TABLE notes (id TEXT PRIMARY KEY, owner TEXT NOT NULL)" },
];
const INSERT = "INSERT INTO notes VALUES (?1, ?2)";

let url: string;
const open: { close(): Promise<void> }[] = [];
async function openStore(at = url, listenAt: string | null = null): Promise<Store> {
  const store = await openPostgres(at, listenAt, NOTES);
  open.push(store);
  return store;
}
async function openProxy(): Promise<PostgresProxy> {
  const proxy = await startPostgresProxy(url);
  open.push(proxy.faults);
  return proxy;
}

beforeEach(async () => {
  url = await postgres().createDatabase();
});
afterEach(async () => {
  for (const opened of open.splice(0).reverse()) await opened.close();
});

const ids = async () =>
  (await query<{ id: string }>(url, `SELECT id FROM notes ORDER BY id COLLATE "C"`)).map(({ id }) => id);
const find = (id: string) => async (sql: Statements) =>
  (await sql.get<{ id: string }>("SELECT id FROM notes WHERE id = ?1", id))?.id;

describe("transactions", () => {
  it("never exceed a quota, with 32 clients of 4 servers at once", async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => openStore()));
    let runs = 0;
    const submit = (i: number) =>
      stores[i % 4]!.transaction(async (tx) => {
        runs++;
        const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM notes WHERE owner = ?1";
        const { count } = (await tx.get<{ count: number }>(sql, "me"))!;
        if (count < 10) await tx.run(INSERT, `n${i}`, "me");
        return count < 10;
      });
    const accepted = await Promise.all(Array.from({ length: 32 }, (_, i) => submit(i)));
    expect(accepted.filter((yes) => yes)).toHaveLength(10);
    expect(await ids()).toHaveLength(10);
    expect(runs).toBeGreaterThan(32);
  });

  it("that are relaxed do not get in each other's way when they change different rows", async () => {
    const store = await openStore();
    for (const id of ["a", "b"]) await store.run(INSERT, id, "me");
    let runs = 0;
    let meet = () => {};
    const together = new Promise<void>((resolve) => {
      meet = resolve;
    });
    // New entries on a page of an index that the other one has read: serializable, one of the two would fail.
    await query(url, "CREATE INDEX ON notes (owner)");
    const change = (id: string) =>
      store.transaction(
        async (tx) => {
          runs++;
          await tx.run("UPDATE notes SET owner = ?2 WHERE id = ?1", id, "you");
          if (runs === 2) meet();
          await together;
        },
        { relaxed: true },
      );
    await Promise.all([change("a"), change("b")]);
    expect(runs).toBe(2);
    expect(await query(url, "SELECT owner FROM notes")).toEqual([{ owner: "you" }, { owner: "you" }]);
  });

  it("get through to a row that others change all the time", async () => {
    const store = await openStore();
    await store.run(INSERT, "hot", "0");
    let stopped = false;
    const change = async (name: string) => {
      while (!stopped) await store.transaction((tx) => tx.run("UPDATE notes SET owner = ?1 WHERE id = 'hot'", name));
    };
    const others = ["1", "2", "3"].map(change);
    let runs = 0;
    let done = 0;
    // on a slow machine the others may miss the first ones
    for (; done < 5 || runs === done; done++) {
      await store.transaction(async (tx) => {
        runs++;
        await tx.get("SELECT owner FROM notes WHERE id = 'hot'");
        await new Promise((resolve) => setTimeout(resolve, 30));
        await tx.run("UPDATE notes SET owner = 'me' WHERE id = 'hot'");
      });
    }
    stopped = true;
    await Promise.all(others);
    expect(runs).toBeLessThanOrEqual(done * 4);
  });

  it("run again when another one made the same key, and then find it", async () => {
    const stores = await Promise.all([openStore(), openStore()]);
    const make = (store: Store) =>
      store.transaction(async (tx) => {
        if (await find("key")(tx)) return "found";
        await tx.run(INSERT, "key", "me");
        return "made";
      });
    const results = await Promise.all([0, 1, 0, 1, 0, 1].map((i) => make(stores[i]!)));
    expect(results.sort()).toEqual(["found", "found", "found", "found", "found", "made"]);
  });

  it("fail with the statement that failed, although the work caught it", async () => {
    const store = await openStore();
    await store.run(INSERT, "a", "me");
    const swallowing = store.transaction(async (tx) => {
      await tx.run(INSERT, "b", "me");
      await tx.run(INSERT, "a", "me").catch(() => {});
      return "done";
    });
    await expect(swallowing).rejects.toThrow("duplicate key");
    expect(await ids()).toEqual(["a"]);
  });

  it.each([false, true])("find out whether a commit without an answer took effect (relaxed: %s)", async (relaxed) => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    for (const [fault, id] of [
      ["after", "a"],
      ["before", "b"],
    ] as const) {
      let runs = 0;
      proxy.commitFaults.push(fault);
      const work = async (tx: Statements) => {
        runs++;
        await tx.run(INSERT, id, "me");
        return { id };
      };
      expect(await store.transaction(work, { relaxed })).toEqual({ id });
      expect(runs, fault).toBe(fault === "after" ? 1 : 2);
    }
    expect(proxy.faults.cuts).toBe(2);
    expect(await ids()).toEqual(["a", "b"]);
  });

  it("are not repeated blindly while nobody can be asked how they ended", async () => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    for (const fault of ["after", "before"] as const) {
      proxy.commitFaults.push(fault);
      const inserting = store.transaction(async (tx) => {
        await tx.run(INSERT, fault, "me");
        proxy.faults.refuse = true;
      });
      await expect(inserting).rejects.toBeInstanceOf(CommitUnknown);
      proxy.faults.refuse = false;
    }
    await store.run(INSERT, "later", "me");
    expect(await ids()).toEqual(["after", "later"]);
  });

  it("take one round trip for the beginning, one for the end and one for each statement", async () => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    await store.run(INSERT, "a", "me");
    const before = proxy.roundTrips;
    await store.run(INSERT, "b", "me");
    expect(proxy.roundTrips - before).toBe(3);
  });

  it("are kept when the server crashes, relaxed ones too", async () => {
    const store = await openStore();
    for (const id of ["a", "b", "c"]) await store.transaction((tx) => tx.run(INSERT, id, "me"), { relaxed: true });
    await postgres().restart("immediate");
    expect(await ids()).toEqual(["a", "b", "c"]);
  });

  it("lose and double nothing while the server crashes again and again", async () => {
    const stores = await Promise.all([openStore(), openStore()]);
    const told: string[] = [];
    let stopped = false;
    const client = async (name: number) => {
      for (let i = 0; !stopped; i++) {
        const id = `${name}-${i}`;
        const work = (tx: Statements) => tx.run(INSERT, id, "me").then(() => id);
        try {
          told.push(await stores[name % 2]!.transaction(work));
        } catch (error) {
          // a server that is slow to come back
          if (!isStoreUnreachable(error)) throw error;
        }
      }
    };
    const clients = Array.from({ length: 8 }, (_, name) => client(name));
    for (let i = 0; i < 3; i++) {
      const before = told.length;
      await expect.poll(() => told.length).toBeGreaterThan(before + 20);
      await postgres().restart("immediate");
    }
    const before = told.length;
    await expect.poll(() => told.length).toBeGreaterThan(before + 20);
    stopped = true;
    await Promise.all(clients);
    const kept = new Set(await ids());
    expect(told.filter((id) => !kept.has(id))).toEqual([]);
    expect(new Set(told).size).toBe(told.length);
  });
});

describe("a change outside a transaction", () => {
  const CHANGE = "UPDATE notes SET owner = ?1 WHERE owner = 'me' RETURNING id";

  it("is not repeated when its answer is lost, as a read is", async () => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    await store.run(INSERT, "a", "me");
    proxy.lostUpdates.push("UPDATE notes");
    await expect(store.all(CHANGE, "you")).rejects.toBeInstanceOf(CommitUnknown);
    expect(proxy.faults.cuts).toBe(1);
    expect(await store.all("SELECT owner FROM notes")).toEqual([{ owner: "you" }]);
  });
});

describe("a pooler that gives each transaction another connection", () => {
  it("makes the store do without prepared statements", async () => {
    const store = await openStore();
    const read = () => store.all<{ id: string }>("SELECT id FROM notes ORDER BY id");
    const write = (id: string) => store.transaction((tx) => tx.run(INSERT, id, "me"));
    const forget = () => store.all("DEALLOCATE ALL");
    await write("a");
    await read();
    await forget();
    expect(await read()).toEqual([{ id: "a" }]);
    await write("b");

    const other = await openStore();
    await other.transaction((tx) => tx.run(INSERT, "c", "me"));
    await other.all("DEALLOCATE ALL");
    await other.transaction((tx) => tx.run(INSERT, "d", "me"));
    expect(await read()).toHaveLength(4);
    await forget();
    expect(await read()).toHaveLength(4);
  });
});

describe("a server that is unreachable", () => {
  it("makes calls fail after 3 seconds, and serves them once it is back", async () => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    proxy.faults.refuse = true;
    proxy.faults.cutAll();
    const since = performance.now();
    const calls = [store.get("SELECT 1 AS one"), store.run(INSERT, "a", "me"), store.notify("jobs", "x")];
    const results = await Promise.allSettled(calls);
    expect(performance.now() - since).toBeGreaterThan(2_500);
    for (const result of results.slice(0, 2)) expect(result).toMatchObject({ reason: expect.any(StoreUnreachable) });
    expect(results[2]!.status).toBe("fulfilled");
    const waiting = store.get("SELECT 1 AS one");
    proxy.faults.refuse = false;
    expect(await waiting).toEqual({ one: 1 });
    expect(await ids()).toEqual([]);
  });

  it("is not noticed by calls when only connections were lost", async () => {
    const proxy = await openProxy();
    const store = await openStore(proxy.url);
    for (let i = 0; i < 5; i++) {
      await Promise.all([1, 2, 3].map(() => store.get("SELECT 1 AS one")));
      proxy.faults.cutAll();
      await store.transaction((tx) => tx.run(INSERT, `n${i}`, "me"));
      expect(await store.get("SELECT 1 AS one")).toEqual({ one: 1 });
    }
  });
});

describe("hints", () => {
  it("reach other servers, and listeners look again after every new connection", async () => {
    const proxy = await openProxy();
    const [here, there] = [await openStore(url, proxy.url), await openStore()];
    const heard: string[] = [];
    here.listen("jobs", (payload) => heard.push(payload));
    await expect.poll(() => heard).toContain("");
    await there.notify("jobs", "one");
    await expect.poll(() => heard).toContain("one");
    const later: string[] = [];
    here.listen("events", (payload) => later.push(payload));
    await expect.poll(() => later).toEqual([""]);
    await there.notify("events", "é".repeat(4_000));
    await expect.poll(() => later).toEqual(["", ""]);
    heard.length = 0;
    proxy.faults.cutAll();
    await expect.poll(() => heard).toContain("");
    await there.notify("jobs", "two");
    await expect.poll(() => heard).toContain("two");
  });

  it("make listeners look every 2 seconds while there is no connection", async () => {
    const proxy = await openProxy();
    const store = await openStore(url, proxy.url);
    const heard: string[] = [];
    store.listen("jobs", (payload) => heard.push(payload));
    await expect.poll(() => heard).toEqual([""]);
    proxy.faults.refuse = true;
    proxy.faults.cutAll();
    await expect.poll(() => heard.length).toBeGreaterThan(2);
    proxy.faults.refuse = false;
    await expect
      .poll(async () => {
        await store.notify("jobs", "back");
        return heard;
      })
      .toContain("back");
  });

  it("have channels that are words", async () => {
    const store = await openStore();
    expect(() => store.listen("Jobs; DROP", () => {})).toThrow("a channel is a lower-case word");
    await expect(store.notify("a b", "x")).rejects.toThrow("a channel is a lower-case word");
  });
});
