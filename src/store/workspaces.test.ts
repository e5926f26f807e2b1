import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { freshStores, STORES, statementsOf } from "../../test/support/stores.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openSqlite } from "./sqlite.ts";
import type { Store } from "./store.ts";
import { ResponseTable } from "./tables/responses.ts";
import { tablesOn } from "./tables/tables.ts";
import { type CreatedToken, TokenStore } from "./tokens.ts";
import { OWNED_TABLES } from "./workspaces.ts";

const inference = { scopes: ["inference"], lifetime: null } as const;

async function addModel(store: Store, owner: string, name: string): Promise<string> {
  const names = { id: randomUUID(), owner, entity: "e", project: "p", name, baseModel: "b" };
  return (await tablesOn(store).modelTable.insert({ ...names, loraRank: 1, loraAlpha: 1, nextStep: 0 })).id;
}

async function addJob(store: Store, owner: string, modelId: string, idempotencyKey: string | null = null) {
  const job = {
    id: randomUUID(),
    modelId,
    owner,
    kind: "rl" as const,
    config: "{}",
    requestHash: null,
    openBytes: 0,
    recordBytes: 0,
  };
  return (await tablesOn(store).jobTable.insert({ ...job, idempotencyKey })).id;
}

it("every table with an owner moves with its workspace, or need not", async () => {
  const store = openSqlite(":memory:");
  const owned = await store.all<{ name: string }>(
    `SELECT tables.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
     WHERE tables.type = 'table' AND columns.name = 'owner'`,
  );
  await store.close();
  // responses: empty since stored_responses. accounts: for locks. stored_bytes: added up. deleted_models: kept for a day
  const others = ["responses", "accounts", "stored_bytes", "deleted_models"];
  expect(owned.map(({ name }) => name).sort()).toEqual([...OWNED_TABLES, ...others].sort());
});

describe.each(STORES)("workspaces on %s", (kind) => {
  const fresh = freshStores(kind);
  const workspaceOf = ({ record }: CreatedToken) => record.workspace.name;

  it("are made with tokens: one for each, or one that several share", async () => {
    const tokens = new TokenStore(await fresh());
    const [a, b] = [
      await tokens.create({ name: "ci", ...inference }),
      await tokens.create({ name: "ci", ...inference }),
    ];
    expect(workspaceOf(a)).toBe("ci");
    expect(workspaceOf(b)).toBe(`ci-${b.record.id}`);
    // both register models as ci/…, as before
    expect([a.record.workspace.entity, b.record.workspace.entity]).toEqual(["ci", "ci"]);
    const c = await tokens.create({ name: "c", ...inference, workspace: "team" });
    const d = await tokens.create({ name: "d", ...inference, workspace: "team" });
    expect(c.record.workspace).toEqual(d.record.workspace);
    expect(await tokens.check(d.secret)).toEqual({ ok: true, token: d.record });
    expect((await tokens.create({ name: "", ...inference })).record.workspace.name).toMatch(/^[0-9a-f]{8}$/);
  });

  it("of --api-key can be joined by name, but never by accident", async () => {
    const tokens = new TokenStore(await fresh());
    const named = await tokens.create({ name: "api-key-1", ...inference });
    expect(workspaceOf(named)).toBe(`api-key-1-${named.record.id}`);
    expect(named.record.workspace.id).not.toBe("key-0");
    const meant = await tokens.create({ name: "x", ...inference, workspace: "api-key-2" });
    expect(meant.record.workspace).toEqual({ id: "key-1", name: "api-key-2", entity: "api-key-2" });
  });

  it("outlive their tokens", async () => {
    const tokens = new TokenStore(await fresh());
    const lost = await tokens.create({ name: "me", ...inference });
    await tokens.revoke("me");
    const again = await tokens.create({ name: "new", ...inference, workspace: "me" });
    expect(again.record.workspace).toEqual(lost.record.workspace);
  });

  it("are joined: policies, jobs and notes move when no valid token stays behind", async () => {
    const store = await fresh();
    const tokens = new TokenStore(store);
    const { modelTable, jobTable, noteTable } = tablesOn(store);
    const [a, b] = [
      await tokens.create({ name: "ci", ...inference }),
      await tokens.create({ name: "ci", ...inference }),
    ];
    const models = [
      await addModel(store, a.record.workspace.id, "x"),
      await addModel(store, b.record.workspace.id, "y"),
    ] as const;
    const jobs = [
      await addJob(store, a.record.workspace.id, models[0], "key"),
      await addJob(store, b.record.workspace.id, models[1], "key"),
    ] as const;
    const owner = b.record.workspace.id;
    await noteTable.put({ subject: jobs[1], modelId: models[1], owner, tags: ["best"], text: "", updatedAt: "now" });
    const joined = await tokens.join("ci", "ci");
    expect(joined.map(({ id }) => id).sort()).toEqual([a.record.id, b.record.id].sort());
    const { id } = a.record.workspace;
    expect((await modelTable.list(id, {}, null, 9)).map(({ name }) => name)).toEqual(["x", "y"]);
    expect((await jobTable.list(id, null, null, null, 9)).map((job) => job.id)).toEqual([...jobs].reverse());
    expect((await jobTable.byIdempotencyKey(id, "key"))!.id).toBe(jobs[0]);
    expect(await noteTable.list(id, null, 9)).toMatchObject([{ subject: jobs[1], tags: ["best"] }]);
    const check = await tokens.check(b.secret);
    expect(check).toMatchObject({ ok: true, token: { workspace: { id, name: "ci" } } });

    // one leaves: what is there stays with the other
    expect(await tokens.join(b.record.id, "alone")).toHaveLength(1);
    expect(await modelTable.list(id, {}, null, 9)).toHaveLength(2);
    await tokens.revoke(a.record.id);
    // a revoked token keeps nothing; nobody is left in "alone", whose name is free again
    await tokens.join(b.record.id, "ci");
    expect(await modelTable.list(id, {}, null, 9)).toHaveLength(2);
    expect(workspaceOf(await tokens.create({ name: "alone", ...inference }))).toBe("alone");
    expect(await tokens.join("nobody", "ci")).toEqual([]);
  });

  it("are joined with the stored responses and the local key of a workspace that is left", async () => {
    const store = await fresh();
    const tokens = new TokenStore(store);
    const responses = new ResponseTable(store, { bytes: 1e6, days: 1 });
    const all = { scopes: ["inference", "admin"], lifetime: null } as const;
    const first = (await tokens.createFirst({ name: "first", ...all, workspace: "default" }))!;
    const other = await tokens.create({ name: "other", ...inference, workspace: "default" });
    const local = await tokens.createLocal({ name: "local key", ...all, workspace: "default" });
    const { id } = first.record.workspace;
    await addModel(store, id, "x");
    await responses.save(id, { id: "resp_1", previousId: null, response: "{}", input: [], output: [] });
    const used = await responses.used(id);
    const workspaceNow = async ({ secret }: CreatedToken) => {
      const check = await tokens.check(secret);
      return check.ok ? check.token.workspace : null;
    };

    // another token stays, so everything does, and the local key with it
    await tokens.join("first", "team");
    expect((await workspaceNow(local))!.name).toBe("default");
    expect(await responses.get(id, "resp_1")).not.toBeNull();

    // only the local key would stay: it does not keep anything back
    await tokens.join("other", "team");
    const team = (await workspaceNow(other))!;
    expect(await workspaceNow(local)).toEqual(team);
    expect((await tablesOn(store).modelTable.list(team.id, {}, null, 9)).map(({ name }) => name)).toEqual(["x"]);
    expect(await responses.get(team.id, "resp_1")).not.toBeNull();
    expect(await responses.get(id, "resp_1")).toBeNull();
    expect([await responses.used(id), await responses.used(team.id)]).toEqual([0, used]);
    expect((await tokens.openWorkspace("default")).id).not.toBe(id);
  });

  it("with a policy of the same name are not joined, and nothing changes", async () => {
    const store = await fresh();
    const tokens = new TokenStore(store);
    const [a, b] = [await tokens.create({ name: "a", ...inference }), await tokens.create({ name: "b", ...inference })];
    for (const { record } of [a, b]) await addModel(store, record.workspace.id, "same");
    await expect(tokens.join("b", "a")).rejects.toThrow("the workspaces b and a both have a policy e/p/same");
    expect(await tokens.check(b.secret)).toEqual({ ok: true, token: b.record });
  });

  it("are given to the tokens of an older database, which keep what they own", async () => {
    const at = MIGRATIONS.findIndex(({ name }) => name === "workspaces");
    const store = await fresh(MIGRATIONS.slice(0, at));
    const names = { a1: "ci", a2: "ci", a3: "me", a4: "ci-a1", a5: "", a6: "api-key-1" };
    for (const [id, name] of Object.entries(names)) {
      await store.run(
        "INSERT INTO tokens (id, name, hash, scopes, created_at) VALUES (?1, ?2, '', 'admin', 1)",
        id,
        name,
      );
    }
    for (const migration of MIGRATIONS.slice(at)) {
      for (const sql of statementsOf(kind, migration)) await store.run(sql);
    }
    const found = (await new TokenStore(store).list()).map(({ id, workspace }) => [id, workspace]);
    expect(Object.fromEntries(found)).toEqual({
      a1: { id: "a1", name: "ci-a1", entity: "ci" },
      a2: { id: "a2", name: "ci-a2", entity: "ci" },
      a3: { id: "a3", name: "me", entity: "me" },
      a4: { id: "a4", name: "ci-a1-a4", entity: "ci-a1" },
      a5: { id: "a5", name: "-a5", entity: "a5" },
      a6: { id: "a6", name: "api-key-1-a6", entity: "api-key-1" },
    });
  });
});
