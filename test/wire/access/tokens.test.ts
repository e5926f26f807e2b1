// Tokens over HTTP, for admins.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { looseFetch, startTestServer } from "../../support/test-server.ts";

const data = mkdtempSync(join(tmpdir(), "flywheel-tokens-"));
const server = shared(() => startTestServer({ config: { data, ui: false } }));
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const create = async (body: object) => (await server.post("/v1/tokens", body)).json();
const remove = (id: string, key = "test-key") =>
  looseFetch(`${server.url}/v1/tokens/${id}`, { method: "DELETE", ...as(key) });
const me = (key: string) => looseFetch(`${server.url}/v1/me`, as(key));

it("creates a token whose text is shown once, lists it with its last use, and revokes it", async () => {
  const made = await create({ name: "app", scopes: ["inference", "inference"], lifetime_s: 3600, workspace: "team" });
  expect(made).toMatchObject({
    ...{ object: "token", name: "app", scopes: ["inference"], workspace: "team", revoked_at: null, last_used_at: null },
    token: expect.stringMatching(/^fw_/),
  });
  expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(3600_000);
  expect(await (await me(made.token)).json()).toMatchObject({ id: made.id, workspace: { name: "team" } });
  // the server's own key for this machine stands in the list, too
  const list = async () => {
    const body = await (await server.get("/v1/tokens")).json();
    expect(body.data.filter(({ name }: { name: string }) => name === "local key")).toHaveLength(1);
    return { ...body, data: body.data.filter(({ name }: { name: string }) => name !== "local key") };
  };
  const { token: _, ...row } = made;
  await expect.poll(async () => (await list()).data[0].last_used_at).not.toBeNull();
  const listed = await list();
  expect(listed).toMatchObject({
    object: "list",
    data: [{ ...row, last_used_at: expect.any(String) }],
    has_more: false,
  });
  expect(Date.now() - Date.parse(listed.data[0].last_used_at)).toBeLessThan(60_000);
  expect(JSON.stringify(listed)).not.toContain(made.token.slice(12));

  expect((await remove(made.id)).status).toBe(204);
  expect((await me(made.token)).status).toBe(401);
  const { revoked_at } = (await list()).data[0];
  expect(revoked_at).not.toBeNull();
  expect((await remove(made.id)).status).toBe(204);
  expect((await list()).data[0].revoked_at).toBe(revoked_at);
  expect((await remove("app")).status).toBe(404);
});

it("gives a token a workspace of its own unless one is named, and lists in pages", async () => {
  const [a, b] = [
    await create({ name: "ci", scopes: ["training"] }),
    await create({ name: "ci", scopes: ["training"] }),
  ];
  expect([a.workspace, b.workspace]).toEqual(["ci", `ci-${b.id}`]);
  const all = (await (await server.get("/v1/tokens")).json()).data as { id: string }[];
  const first = await (await server.get("/v1/tokens?limit=2")).json();
  expect(first).toMatchObject({ data: all.slice(0, 2), last_id: all[1]!.id, has_more: true });
  const rest = await (await server.get(`/v1/tokens?after=${first.last_id}`)).json();
  expect(rest).toMatchObject({ data: all.slice(2), has_more: false });
  expect((await (await server.get("/v1/tokens?after=gone")).json()).data).toEqual([]);
});

it("is for admins, and refuses what is no token", async () => {
  const { token } = await create({ name: "app", scopes: ["inference", "training"] });
  const body = JSON.stringify({ name: "x", scopes: ["admin"] });
  const headers = { ...as(token).headers, "content-type": "application/json" };
  for (const [method, path, more] of [
    ["GET", "/v1/tokens", {}],
    ["POST", "/v1/tokens", { body }],
    ["DELETE", "/v1/tokens/x", {}],
  ] as const) {
    const answer = await looseFetch(server.url + path, {
      method,
      headers: more.body ? headers : as(token).headers,
      ...more,
    });
    expect(answer.status, `${method} ${path}`).toBe(403);
  }
  for (const wrong of [
    { scopes: ["inference"] },
    { name: "", scopes: ["inference"] },
    { name: "x", scopes: [] },
    { name: "x", scopes: ["root"] },
    { name: "x", scopes: ["inference"], lifetime_s: 0 },
    { name: "x", scopes: ["inference"], workspace: " " },
  ]) {
    expect((await server.post("/v1/tokens", wrong)).status, JSON.stringify(wrong)).toBe(400);
  }
});
