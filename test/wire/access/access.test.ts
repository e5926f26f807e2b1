import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDataDir } from "../../../src/store/data-dir.ts";
import { type Scope, TokenStore } from "../../../src/store/tokens.ts";
import { API_KEY, looseFetch, startTestServer, type TestServer } from "../../support/test-server.ts";

let server: TestServer;
const data = mkdtempSync(join(tmpdir(), "flywheel-access-"));
const store = openDataDir(data);
let now = Math.floor(Date.now() / 1000);
const tokens = new TokenStore(store, () => now);
const make = async (scopes: Scope[], lifetime: number | null = null) =>
  (await tokens.create({ name: "t", scopes, lifetime })).secret;

beforeAll(async () => {
  server = await startTestServer({ config: { data } });
});
afterAll(async () => {
  await server.close();
  await store.close();
});

const chat = (authorization: string | null, body: unknown = { messages: [{ role: "user", content: "say:ok" }] }) =>
  looseFetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(authorization === null ? {} : { authorization }) },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

describe("tokens", () => {
  it("lets --api-key and stored tokens in, whatever the case of the scheme", async () => {
    expect((await chat(`Bearer ${API_KEY}`)).status).toBe(200);
    expect((await chat(`bearer ${API_KEY}`)).status).toBe(200);
    expect((await chat(`Bearer ${await make(["inference"])}`)).status).toBe(200);
    expect((await chat(`Bearer ${await make(["admin"])}`)).status).toBe(200);
  });

  it.each([
    ["missing", null],
    ["empty", ""],
    ["no token", "Bearer"],
    ["basic", `Basic ${Buffer.from(`x:${API_KEY}`).toString("base64")}`],
    ["two words", `Bearer ${API_KEY} extra`],
    ["bare", API_KEY],
  ])("answers 401 with a challenge: %s", async (_name, header) => {
    const response = await chat(header);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe('Bearer realm="flywheel"');
    expect(response.headers.get("x-request-id")).toBeTruthy();
    expect((await response.json()).error).toMatchObject({ type: "AuthenticationError", param: null, code: 401 });
  });

  it("tells unknown, revoked and expired tokens apart, and sees changes at once", async () => {
    const revoked = await make(["inference"]);
    const alive = await make(["inference"], 3600);
    expect((await chat(`Bearer ${revoked}`)).status).toBe(200);
    await tokens.revoke(revoked.slice(3, 11));
    now -= 100; // the next token's life is over already
    const past = await make(["inference"], 10);
    now += 100;
    for (const [secret, reason] of [
      ["fw_00000000_x", /not known/],
      ["wrong", /not known/],
      [revoked, /revoked/],
      [past, /expired/],
    ] as const) {
      const response = await chat(`Bearer ${secret}`);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toContain('error="invalid_token"');
      expect((await response.json()).error.message).toMatch(reason);
    }
    expect((await chat(`Bearer ${alive}`)).status).toBe(200);
  });

  it("keeps a stored token to its scopes and its end, also when it is given as --api-key", async () => {
    const data = mkdtempSync(join(tmpdir(), "flywheel-keys-"));
    const store = openDataDir(data);
    const stored = new TokenStore(store);
    const { secret, record } = await stored.create({ name: "t", scopes: ["training"], lifetime: null });
    const own = await startTestServer({ config: { data, apiKey: [secret, "other"] } });
    const ask = (key: string) => own.post("/v1/chat/completions", { messages: [] }, { authorization: `Bearer ${key}` });
    expect((await ask(secret)).status).toBe(403);
    expect((await ask("other")).status).toBe(400);
    await stored.revoke(record.id);
    expect((await ask(secret)).status).toBe(401);
    await own.close();
    await store.close();
  });

  it("answers 403 for a token without the scope", async () => {
    const response = await chat(`Bearer ${await make(["training"])}`);
    expect(response.status).toBe(403);
    expect(response.headers.get("www-authenticate")).toContain('error="insufficient_scope"');
    expect((await response.json()).error.type).toBe("PermissionDeniedError");
    const load = await looseFetch(`${server.url}/v1/load_lora_adapter`, {
      method: "POST",
      headers: { authorization: `Bearer ${await make(["inference", "training"])}`, "content-type": "application/json" },
      body: "{}",
    });
    expect(load.status).toBe(403);
  });

  it("refuses before it reads the body", async () => {
    expect((await chat("Bearer wrong", "{ not json")).status).toBe(401);
    expect((await chat(null, "x".repeat(100))).status).toBe(401);
  });
});

describe("routes", () => {
  const closed = [
    ["GET", "/v1/models"],
    ["GET", "/v1/models/fake"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/v1/completions"],
    ["POST", "/tokenize"],
    ["POST", "/detokenize"],
    ["POST", "/v1/load_lora_adapter"],
    ["POST", "/v1/unload_lora_adapter"],
    ["GET", "/v1/anything"],
    ["DELETE", "/v1/models"],
  ];
  it.each(closed)("%s %s is closed", async (method, path) => {
    expect((await looseFetch(server.url + path, { method })).status).toBe(401);
  });

  it.each(["/health", "/ping", "/version", "/load", "/metrics", "/openapi.json", "/docs"])(
    "%s is open",
    async (path) => {
      expect((await looseFetch(server.url + path)).status).toBe(200);
    },
  );

  it("answers unknown paths and wrong methods in the envelope, with detail", async () => {
    const missing = await looseFetch(`${server.url}/nothing`);
    expect(missing.status).toBe(404);
    expect(await missing.json()).toMatchObject({ detail: "Not Found", error: { type: "NotFoundError", code: 404 } });
    for (const [path, hint] of [
      ["/chat/completions", /base URL ends with \/v1/],
      ["/models/fake", /base URL ends with \/v1/],
      ["/v1/embeddings", /Embeddings are not offered: this server runs models that generate text/],
      ["/v1/rerank", /Embeddings are not offered/],
      ["/api/chat", /Ollama's API is not offered/],
      ["/v1/audio/speech", /^There is nothing at this path\.$/],
    ] as const) {
      const answer = await server.post(path, {});
      expect(answer.status, path).toBe(404);
      expect((await answer.json()).error.message).toMatch(hint);
    }
    const wrong = await server.get("/v1/chat/completions");
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST");
    expect(await wrong.json()).toMatchObject({ detail: "Method Not Allowed", error: { code: 405 } });
    expect((await server.get("/v1/nothing")).status).toBe(404);
    expect((await server.get("/v1/%zz")).status).toBe(404);
    expect(
      (await server.post("/v1/chat/completions/", { messages: [{ role: "user", content: "say:x" }] })).status,
    ).toBe(200);
  });

  it("answers OPTIONS without a token, and says which methods there are", async () => {
    const response = await looseFetch(`${server.url}/v1/chat/completions`, { method: "OPTIONS" });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST");
    expect((await looseFetch(`${server.url}/nothing`, { method: "OPTIONS" })).status).toBe(404);
  });

  it("answers probes that post", async () => {
    expect((await looseFetch(`${server.url}/ping`, { method: "POST" })).status).toBe(200);
  });

  it("answers preflights without a token", async () => {
    const response = await looseFetch(`${server.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: {
        origin: "http://app.test",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-headers")).toBe("authorization");
  });

  it("allows the listed origins, and sends Vary: origin even if it allows none", async () => {
    const picky = await startTestServer({ config: { allowedOrigins: ["http://app.test"] } });
    const answered = [];
    for (const origin of ["http://app.test", "http://other.test", null]) {
      const headers = origin === null ? undefined : { origin };
      const { headers: got } = await looseFetch(`${picky.url}/health`, { ...(headers && { headers }) });
      answered.push([got.get("access-control-allow-origin"), got.get("vary")]);
    }
    expect(answered).toEqual([
      ["http://app.test", "origin"],
      [null, "origin"],
      [null, "origin"],
    ]);
    await picky.close();
  });
});

describe("start", () => {
  it("makes the first token on loopback, once, and a try-out token later", async () => {
    const fresh = mkdtempSync(join(tmpdir(), "flywheel-first-"));
    const first = await startTestServer({ config: { data: fresh, apiKey: [] } });
    expect(first.token).toMatchObject({ first: true });
    const models = await looseFetch(`${first.url}/v1/models`, {
      headers: { authorization: `Bearer ${first.token!.secret}` },
    });
    expect(models.status).toBe(200);
    await first.close();
    const second = await startTestServer({ config: { data: fresh, apiKey: [] } });
    expect(second.token).toMatchObject({ first: false });
    const authorization = `Bearer ${second.token!.secret}`;
    expect((await looseFetch(`${second.url}/v1/models`, { headers: { authorization } })).status).toBe(200);
    const load = { method: "POST", headers: { authorization, "content-type": "application/json" }, body: "{}" };
    expect((await looseFetch(`${second.url}/v1/load_lora_adapter`, load)).status).toBe(403);
    await second.close();
  });

  it("refuses to listen elsewhere without any token", async () => {
    const fresh = mkdtempSync(join(tmpdir(), "flywheel-open-"));
    await expect(startTestServer({ config: { data: fresh, apiKey: [], host: "0.0.0.0" } })).rejects.toThrow(
      /refusing to listen/,
    );
    const withKey = await startTestServer({ config: { data: fresh, host: "0.0.0.0" } });
    expect(withKey.token).toBeNull();
    await withKey.close();
  });
});
