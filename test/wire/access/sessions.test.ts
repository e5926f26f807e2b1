// Who the caller is, how a browser signs in, and under which host names the server answers.

import { mkdtempSync } from "node:fs";
import { request as rawRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CreateExtension } from "../../../src/app/serve.ts";
import { openDataDir } from "../../../src/store/data-dir.ts";
import { TokenStore } from "../../../src/store/tokens.ts";
import { API_KEY, looseFetch, startTestServer, type TestServer } from "../../support/test-server.ts";

const data = mkdtempSync(join(tmpdir(), "flywheel-sessions-"));
const store = openDataDir(data);
const tokens = new TokenStore(store);
let server: TestServer;
let other: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { data, ui: false } });
  other = await startTestServer({ config: { data, apiKey: [API_KEY] } });
});
afterAll(async () => {
  await server.close();
  await other.close();
  await store.close();
});

const as = (key: string) => ({ authorization: `Bearer ${key}` });
const me = (key: string, at = server) => looseFetch(`${at.url}/v1/me`, { headers: as(key) });
const redeem = (code: unknown, at = server) =>
  looseFetch(`${at.url}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
const codeFor = async (key: string) => {
  const answer = await looseFetch(`${server.url}/v1/session-codes`, { method: "POST", headers: as(key) });
  expect(answer.status).toBe(200);
  return answer.json();
};
const sessionOf = async (key: string) => (await redeem((await codeFor(key)).code)).json();

describe("GET /v1/me", () => {
  it("tells a token, an --api-key and nobody who they are", async () => {
    const { secret, record } = await tokens.create({
      ...{ name: "app", scopes: ["training", "inference"], lifetime: 3600, workspace: "team" },
    });
    expect(await (await me(secret)).json()).toEqual({
      ...{ object: "principal", id: record.id, name: "app", scopes: ["inference", "training"], session: false },
      workspace: { id: record.workspace.id, name: "team" },
      expires_at: new Date(record.expiresAt! * 1000).toISOString(),
      storage: null,
    });
    expect(await (await me(API_KEY)).json()).toMatchObject({
      ...{ id: "key-0", scopes: ["inference", "training", "admin"], expires_at: null },
      workspace: { id: "key-0", name: "api-key-1" },
    });
    expect((await looseFetch(`${server.url}/v1/me`)).status).toBe(401);
  });
});

it("GET /v1/server describes the server", async () => {
  expect((await looseFetch(`${server.url}/v1/server`)).status).toBe(401);
  expect(await (await server.get("/v1/server")).json()).toMatchObject({
    ...{ object: "server", role: "all", dtype: null, threads: null },
    requests: { running: 0, waiting: 0 },
    model: { id: "fake", names: ["fake", "fake-alias"], context_length: 2048, parameters: null },
    limits: { max_model_len: 2048, max_num_seqs: 8, max_n: 16384, max_logprobs: 20 },
    sampling_defaults: { temperature: 1, top_p: 1, top_k: 0 },
    parsers: { tool_call: null, reasoning: null, auto_tool_choice: false },
    features: { prefix_cache: true, structured_outputs: true },
  });
});

describe("sessions", () => {
  it("stand for the token that made the code, on every server with the same data", async () => {
    const { secret } = await tokens.create({ name: "ann", scopes: ["inference"], lifetime: null, workspace: "team" });
    const { code, url, expires_at } = await codeFor(secret);
    expect(url).toBe(`${server.url}/#code=${code}`);
    expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(600_000);
    const session = await (await redeem(code, other)).json();
    expect(session).toMatchObject({ object: "session", key: expect.stringMatching(/^fw_session_/) });
    const [own, signedIn] = [await (await me(secret)).json(), await (await me(session.key)).json()];
    expect(signedIn).toEqual({ ...own, session: true, expires_at: session.expires_at });
    const { storage: _, ...principal } = signedIn;
    expect(session.principal).toEqual(principal);
    const left = Date.parse(session.expires_at) - Date.now();
    expect(left).toBeGreaterThan(11.9 * 3600_000);
    expect(left).toBeLessThanOrEqual(12 * 3600_000);
    const scopes = await looseFetch(`${server.url}/v1/load_lora_adapter`, { method: "POST", headers: as(session.key) });
    expect(scopes.status).toBe(403);
  });

  it("a code that was used, made up or malformed is a 401", async () => {
    const { code } = await codeFor(API_KEY);
    expect((await redeem(code)).status).toBe(200);
    for (const wrong of [code, "A".repeat(43), "", "../x"]) {
      const answer = await redeem(wrong);
      expect(answer.status).toBe(401);
      expect((await answer.json()).error).toMatchObject({ type: "AuthenticationError", code: 401 });
    }
    expect((await redeem({ $ne: 1 })).status).toBe(400);
  });

  it("end with DELETE, with their token, and with the key that they stand for", async () => {
    const end = (key: string) =>
      looseFetch(`${server.url}/v1/sessions/current`, { method: "DELETE", headers: as(key) });
    const mine = await sessionOf(API_KEY);
    expect((await end(mine.key)).status).toBe(204);
    expect((await me(mine.key)).status).toBe(401);
    expect((await end(API_KEY)).status).toBe(404);

    const { secret, record } = await tokens.create({ name: "gone", scopes: ["inference"], lifetime: null });
    const session = await sessionOf(secret);
    expect((await me(session.key)).status).toBe(200);
    await tokens.revoke(record.id);
    const refused = await me(session.key);
    expect(refused.status).toBe(401);
    expect((await refused.json()).error.message).toMatch(/session is over/);

    const ofKey = await sessionOf(API_KEY);
    const rotated = await startTestServer({ config: { data, apiKey: ["another"] } });
    expect((await me(ofKey.key, rotated)).status).toBe(401);
    expect((await me(ofKey.key)).status).toBe(200);
    await rotated.close();
  });

  it("a session of a session ends no later", async () => {
    const { secret } = await tokens.create({ name: "short", scopes: ["inference"], lifetime: 3600 });
    const first = await sessionOf(secret);
    const second = await sessionOf(first.key);
    expect(second.principal.id).toBe(first.principal.id);
    expect(Date.parse(second.expires_at)).toBeLessThanOrEqual(Date.parse(first.expires_at));
  });

  it("the link of the start signs in as the first --api-key, where there is a page", async () => {
    expect(await server.link()).toBeNull();
    const page: CreateExtension = async () => ({
      routes: (app) => void app.get("/", { config: { access: "public" } }, async () => "page"),
      close: async () => {},
    });
    const fresh = mkdtempSync(join(tmpdir(), "flywheel-link-"));
    for (const [apiKey, who] of [
      [["k"], { id: "key-0", workspace: { id: "key-0" } }],
      [[], { name: "first", workspace: { name: "default" }, scopes: ["inference", "training", "admin"] }],
    ] as const) {
      const paged = await startTestServer({ config: { data: fresh, apiKey, ui: false }, extensions: [page] });
      const link = await paged.link();
      expect(link).toMatch(new RegExp(`^${paged.url}/#code=[\\w-]{43}$`));
      const session = await (await redeem(link!.split("=")[1], paged)).json();
      expect(session.principal).toMatchObject(who);
      await paged.close();
    }
    const exposed = await startTestServer({ config: { host: "0.0.0.0", ui: false }, extensions: [page] });
    expect(await exposed.link()).toBeNull();
    await exposed.close();
  });
});

describe("host names", () => {
  const ask = (host: string | null, path = "/health", at = server) =>
    new Promise<number>((resolve, reject) => {
      const { hostname, port } = new URL(at.url);
      const options = { hostname, port, path, setHost: false, headers: host === null ? {} : { host } };
      rawRequest(options, (response) => {
        response.resume();
        resolve(response.statusCode!);
      })
        .on("error", reject)
        .end();
    });

  it("of others are a 421 at every path, public or not", async () => {
    for (const path of ["/", "/health", "/metrics", "/v1/models", "/v1/sessions", "/nothing"]) {
      expect(await ask("evil.example:8000", path), path).toBe(421);
    }
    expect(await ask("localhost.evil.example")).toBe(421);
    expect(await ask("")).toBe(421);
    for (const host of ["localhost:1", "my.localhost", "127.0.0.1", "[::1]:8000"]) expect(await ask(host)).toBe(200);
    const answer = await looseFetch(`${server.url}/health`);
    expect(answer.status).toBe(200);
  });

  it("that the operator names are answered", async () => {
    const named = await startTestServer({ config: { allowedHosts: ["api.example"] } });
    expect(await ask("api.example", "/health", named)).toBe(200);
    expect(await ask("other.example", "/health", named)).toBe(421);
    await named.close();
  });
});
