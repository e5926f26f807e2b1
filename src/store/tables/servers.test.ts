import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../../test/support/stores.ts";
import { tablesOn } from "./tables.ts";

const SERVER = {
  id: "s1",
  role: "worker",
  address: "http://a:1",
  version: "1.0.0",
  facts: { models: ["m"], replicas: [] },
};

describe.each(STORES)("servers on %s", (kind) => {
  const fresh = freshStores(kind);

  it("lists each with what it said last, how long ago, and the jobs that it runs", async () => {
    const store = await fresh();
    const { serverTable, jobTable, leaseTable } = tablesOn(store);
    await serverTable.beat(SERVER);
    await serverTable.beat({ ...SERVER, id: "s2", role: "api", version: "2.0.0" });
    const replicas = [{ name: "r", state: "ready", inFlight: 3 }];
    await serverTable.beat({ ...SERVER, facts: { models: ["m"], replicas } });
    const job = { id: "j", modelId: "m", owner: "me", kind: "rl" as const, config: "{}" };
    await jobTable.insert({ ...job, idempotencyKey: null, requestHash: null, openBytes: 0, recordBytes: 0 });
    await leaseTable.claim("s1", 1000);
    const seen = await serverTable.list();
    expect(seen.map(({ role, version, running }) => [role, version, running.length])).toEqual([
      ["api", "2.0.0", 0],
      ["worker", "1.0.0", 1],
    ]);
    expect(seen[1]).toMatchObject({
      facts: { replicas },
      running: [{ id: "j", modelId: "m", kind: "rl", progress: null }],
    });
    expect(seen[1]!.silentMs).toBeLessThan(60_000);
    await serverTable.remove("s1");
    expect((await serverTable.list()).map(({ id }) => id)).toEqual(["s2"]);
  });

  it("forgets a server five minutes after it was last heard of", async () => {
    const store = await fresh();
    const { serverTable } = tablesOn(store);
    for (const [id, minutes] of [
      ["old", 6],
      ["silent", 4],
    ] as const) {
      await serverTable.beat({ ...SERVER, id });
      await store.run("UPDATE servers SET seen_at = seen_at - ?1 WHERE id = ?2", minutes * 60_000, id);
    }
    await serverTable.beat(SERVER);
    expect((await serverTable.list()).map(({ id }) => id).sort()).toEqual(["s1", "silent"]);
  });
});
