import { describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../test/support/stores.ts";
import { operatorOf, SessionStore } from "./sessions.ts";
import { TokenStore } from "./tokens.ts";

const HOUR = 3600;
const holder = { kind: "token", tokenId: "1a2b3c4d" } as const;

describe.each(STORES)("sessions on %s", (kind) => {
  const fresh = freshStores(kind);

  it("a code gives one key, for 12 hours, and only its hash is stored", async () => {
    let now = 1000;
    const store = await fresh();
    const sessions = new SessionStore(store, () => now);
    const { code, expiresAt } = await sessions.createCode(holder);
    expect(expiresAt).toBe(1000 + 600);
    const { key, ...session } = (await sessions.redeem(code))!;
    expect(key).toMatch(/^fw_session_[\w-]{43}$/);
    expect(session).toEqual({ holder, expiresAt: 1000 + 12 * HOUR });
    expect(await sessions.redeem(code)).toBeNull();
    expect(await sessions.check(key)).toEqual(session);
    expect(await sessions.check(`${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`)).toBeNull();
    const rows = JSON.stringify(await store.all("SELECT * FROM sessions"));
    expect(rows).not.toContain(key.slice(11));
    now += 12 * HOUR;
    expect(await sessions.check(key)).toBeNull();
  });

  it("a code works on every server with the same store, and once among all", async () => {
    const store = await fresh();
    const servers = Array.from({ length: 8 }, () => new SessionStore(store));
    const { code } = await servers[0]!.createCode(holder);
    const redeemed = await Promise.all(servers.map((server) => server.redeem(code)));
    const made = redeemed.filter((session) => session !== null);
    expect(made).toHaveLength(1);
    expect(await servers[5]!.check(made[0]!.key)).toMatchObject({ holder });
  });

  it("a code is over after 10 minutes, and unknown ones are nothing", async () => {
    let now = 1000;
    const sessions = new SessionStore(await fresh(), () => now);
    const { code } = await sessions.createCode(holder);
    now += 600;
    expect(await sessions.redeem(code)).toBeNull();
    for (const wrong of ["", "x", "A".repeat(43), `${code}x`]) expect(await sessions.redeem(wrong)).toBeNull();
  });

  it("a session ends with what it was made from, or when it is ended", async () => {
    const sessions = new SessionStore(await fresh(), () => 1000);
    const short = (await sessions.redeem((await sessions.createCode(holder, 1060)).code))!;
    expect(short.expiresAt).toBe(1060);
    const [a, b] = [
      (await sessions.redeem((await sessions.createCode(holder)).code))!,
      (await sessions.redeem((await sessions.createCode({ kind: "key", keyHash: "ab" })).code))!,
    ];
    expect(b.holder).toEqual({ kind: "key", keyHash: "ab" });
    await sessions.end(a.key);
    expect(await sessions.check(a.key)).toBeNull();
    expect(await sessions.check(b.key)).not.toBeNull();
  });

  it("who has the data is the oldest valid admin, or an operator of the first workspace", async () => {
    const tokens = new TokenStore(await fresh());
    const { id } = await tokens.openWorkspace("default");
    expect(await operatorOf(tokens)).toEqual({ kind: "operator", workspace: id });
    await tokens.create({ name: "app", scopes: ["inference"], lifetime: null });
    const admin = await tokens.create({ name: "root", scopes: ["admin"], lifetime: null });
    await tokens.create({ name: "later", scopes: ["admin"], lifetime: null });
    const later = await operatorOf(tokens);
    expect(later.kind).toBe("token");
    await tokens.revoke("later");
    expect(await operatorOf(tokens)).toEqual({ kind: "token", tokenId: admin.record.id });
  });
});
