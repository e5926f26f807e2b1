import { mkdtempSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../test/support/stores.ts";
import { DATABASE_FILE, openDataDir } from "./data-dir.ts";
import { TokenStore } from "./tokens.ts";

describe.each(STORES)("%s", (kind) => {
  const fresh = freshStores(kind);

  it("creates, checks, lists and revokes", async () => {
    const store = new TokenStore(await fresh());
    const { secret, record } = await store.create({ name: "ci", scopes: ["inference"], lifetime: null });
    expect(secret).toMatch(/^fw_[0-9a-f]{8}_[\w-]{43}$/);
    expect(await store.check(secret)).toEqual({ ok: true, token: record });
    expect(await store.check(`${secret.slice(0, -1)}${secret.endsWith("A") ? "B" : "A"}`)).toEqual({
      ok: false,
      why: "unknown",
    });
    expect(await store.check("")).toEqual({ ok: false, why: "unknown" });
    expect((await store.revoke("ci")).map((t) => t.id)).toEqual([record.id]);
    expect(await store.revoke("ci")).toEqual([]);
    expect(await store.check(secret)).toEqual({ ok: false, why: "revoked" });
    expect(await store.hasUsable()).toBe(false);
  });

  it("expires at the end of its lifetime", async () => {
    let now = 1000;
    const store = new TokenStore(await fresh(), () => now);
    const { secret } = await store.create({ name: "short", scopes: ["admin"], lifetime: 60 });
    now = 1059;
    expect((await store.check(secret)).ok).toBe(true);
    now = 1060;
    expect(await store.check(secret)).toEqual({ ok: false, why: "expired" });
  });

  it("creates the first token only once", async () => {
    const store = new TokenStore(await fresh());
    const first = { name: "first", scopes: ["admin"], lifetime: null } as const;
    expect(await store.createFirst(first)).not.toBeNull();
    expect(await store.createFirst(first)).toBeNull();
  });

  it("a local key works like a token, and counts for nothing else", async () => {
    let now = 1000;
    const store = new TokenStore(await fresh(), () => now);
    const local = { name: "local key", scopes: ["inference", "admin"], lifetime: 60, workspace: "default" } as const;
    const { secret, record } = await store.createLocal(local);
    expect(await store.check(secret)).toMatchObject({ ok: true, token: { id: record.id, scopes: local.scopes } });
    expect(await store.hasUsable()).toBe(false);
    expect(await store.firstAdmin()).toBeNull();
    const first = await store.createFirst({ name: "first", scopes: ["admin"], lifetime: null, workspace: "default" });
    expect((await store.firstAdmin())?.id).toBe(first!.record.id);
    // only a local key is deleted by its text, and an expired one with the next
    await store.removeLocal(first!.secret);
    now = 1060;
    await store.createLocal(local);
    expect((await store.list()).map(({ name, isLocal }) => [name, isLocal])).toEqual([
      ["first", false],
      ["local key", true],
    ]);
  });
});

it("stores no secret, in a file that only its owner can read", async () => {
  const dir = mkdtempSync(join(tmpdir(), "flywheel-tokens-"));
  const db = openDataDir(dir);
  const { secret } = await new TokenStore(db).create({ name: "x", scopes: ["inference"], lifetime: null });
  const path = join(dir, DATABASE_FILE);
  for (const beside of ["", "-wal", "-shm"]) expect(statSync(path + beside).mode & 0o077, beside).toBe(0);
  await db.close();
  expect(readFileSync(path).includes(Buffer.from(secret.slice(12)))).toBe(false);
  expect((await new TokenStore(openDataDir(dir)).check(secret)).ok).toBe(true);
});
