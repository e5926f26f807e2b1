// cached_tokens, and the time to the first token, tell what is in the prefix cache. A tenant who guesses the beginning of
// another's prompt must find nothing there (the class of CVE-2025-46570).
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";
import { FakeVllm } from "../support/fake-vllm.ts";
import { shared } from "../support/shared-server.ts";
import { API_KEY, type Loose, looseFetch, says, startTestServer } from "../support/test-server.ts";

const OTHER = "other-key";
const as = (key: string) => ({ authorization: `Bearer ${key}` });

const server = shared(() => startTestServer({ config: { apiKey: [API_KEY, OTHER] } }));
const open = shared(() => startTestServer({ config: { apiKey: [API_KEY, OTHER], sharePrefixCache: true } }));

/** A prompt of many blocks that nobody has sent before. */
let prompts = 0;
const secret = () => `${prompts++}: ${"the secret of another tenant, ".repeat(8)}`;

/** How each dialect sends a prompt, and where it tells the tokens that came from the cache. */
const DIALECTS: Record<string, [path: string, body: (text: string) => object, cached: (reply: Loose) => number]> = {
  chat: ["/v1/chat/completions", (text) => ({ messages: says(text), max_tokens: 1 }), cachedIn],
  batch: ["/v1/chat/completions/batch", (text) => ({ messages: [says(text)], max_tokens: 1 }), cachedIn],
  completions: ["/v1/completions", (text) => ({ prompt: text, max_tokens: 1 }), cachedIn],
  "completions with n": ["/v1/completions", (text) => ({ prompt: text, max_tokens: 1, n: 3 }), cachedIn],
  invocations: ["/invocations", (text) => ({ prompt: text, max_tokens: 1 }), cachedIn],
  generate: [
    "/inference/v1/generate",
    (text) => ({ token_ids: [...Buffer.from(text)], sampling_params: { max_tokens: 1 } }),
    cachedIn,
  ],
  responses: [
    "/v1/responses",
    (text) => ({ input: text, max_output_tokens: 1 }),
    ({ usage }) => usage.input_tokens_details.cached_tokens,
  ],
  messages: [
    "/v1/messages",
    (text) => ({ model: "fake", messages: [{ role: "user", content: text }], max_tokens: 1 }),
    ({ usage }) => usage.cache_read_input_tokens,
  ],
};

function cachedIn({ usage }: Loose): number {
  return usage.prompt_tokens_details.cached_tokens;
}

/** Tokens from the cache when these send the same prompt, one after the other. */
async function cachedFor(dialect: string, keys: readonly string[], at = server): Promise<number[]> {
  const [path, body, cached] = DIALECTS[dialect]!;
  const text = secret();
  const found = [];
  for (const key of keys) {
    const reply = await at.post(path, body(text), as(key));
    expect(reply.status).toBe(200);
    found.push(cached(await reply.json()));
  }
  return found;
}

describe("prefixes of the embedded engine", () => {
  it.each(Object.keys(DIALECTS))("are found by their own workspace alone: %s", async (dialect) => {
    const [first, stranger, own] = await cachedFor(dialect, [API_KEY, OTHER, API_KEY]);
    expect([first, stranger]).toEqual([0, 0]);
    expect(own).toBeGreaterThan(200);
  });

  it("are shared by the tokens and sessions of a workspace, whatever their scopes, and kept from admins of others", async () => {
    const make = async (body: object) => (await (await server.post("/v1/tokens", body)).json()).token as string;
    const colleague = await make({ name: "a", scopes: ["inference"], workspace: "api-key-1" });
    const stranger = await make({ name: "b", scopes: ["inference", "admin"] });
    const asked = await looseFetch(`${server.url}/v1/session-codes`, { method: "POST", headers: as(API_KEY) });
    const session = (await (await server.post("/v1/sessions", await asked.json())).json()).key as string;
    const found = await cachedFor("chat", [API_KEY, stranger, colleague, session]);
    expect(found.map((cached) => cached > 0)).toEqual([false, false, true, true]);
  });

  it("are shared by all workspaces with --share-prefix-cache", async () => {
    const [first, stranger] = await cachedFor("chat", [API_KEY, OTHER], open);
    expect(first).toBe(0);
    expect(stranger).toBeGreaterThan(200);
  });

  it("cannot be reached through a salt that another workspace's requests have inside", async () => {
    const seen: (string | null)[] = [];
    const { engine } = server.service;
    const generate = engine.generate.bind(engine);
    engine.generate = (request) => {
      seen.push(request.cacheSalt);
      return generate(request);
    };
    const send = (key: string, salt?: string) =>
      server.post("/v1/completions", { prompt: "x", max_tokens: 1, cache_salt: salt }, as(key));
    await send(API_KEY);
    await send(OTHER, seen[0]!);
    await send(OTHER, "null");
    await send(OTHER);
    engine.generate = generate;
    expect(new Set(seen).size).toBe(4);
  });
});

describe("salts in requests to replicas", () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-salts-"));
  let fake: FakeVllm;
  let front: StartedServer;
  afterAll(async () => {
    await front?.close();
    await fake?.close();
  });

  it("are digests of workspace and salt, whatever the client sends", async () => {
    fake = await FakeVllm.start({ vocabSize: 512 });
    const model = fileURLToPath(new URL("../fixtures/llama", import.meta.url));
    const flags = { model, port: 0, data, apiKey: [API_KEY, OTHER], logLevel: "error", training: false };
    front = await startServer(loadConfig({ env: {}, flags: { ...flags, engineUrl: [fake.url] } }), loadModel);
    fake.completions.length = 0;
    const salts = [undefined, "a", "@/\\\0", "s".repeat(256), "é".repeat(128)];
    for (const key of [API_KEY, OTHER]) {
      for (const cache_salt of salts) {
        const reply = await looseFetch(`${front.url}/v1/completions`, {
          method: "POST",
          headers: { ...as(key), "content-type": "application/json" },
          body: JSON.stringify({ prompt: [5, 6, 7], max_tokens: 1, cache_salt }),
        });
        expect(reply.status, await reply.text()).toBe(200);
      }
    }
    const sent = fake.completions.map(({ cache_salt }) => cache_salt as string);
    expect(sent).toHaveLength(10);
    for (const salt of sent) expect(salt).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(sent).size).toBe(10);
  });
});

describe("long salts", () => {
  it.each(Object.keys(DIALECTS))("are refused: %s", async (dialect) => {
    const [path, body] = DIALECTS[dialect]!;
    const status = async (cache_salt: string) => (await server.post(path, { ...body(secret()), cache_salt })).status;
    expect(await status("é".repeat(128))).toBe(200);
    for (const salt of ["é".repeat(129), "s".repeat(257), "s".repeat(3_000_000)]) expect(await status(salt)).toBe(400);
  });
});
