// A server whose database is PostgreSQL, and what is left of it while the database is unreachable.

import { afterAll, beforeAll, expect, it } from "vitest";
import { createTraining } from "../../../src/app/training.ts";
import { type PostgresProxy, startPostgresProxy } from "../../postgres/postgres-proxy.ts";
import { query } from "../../postgres/start-postgres.ts";
import { usePostgres } from "../../postgres/use-postgres.ts";
import { API_KEY, startTestServer, type TestServer } from "../../support/test-server.ts";

const postgres = usePostgres();
let direct: string;
let proxy: PostgresProxy;
let server: TestServer;
let stepMs = 0;

beforeAll(async () => {
  direct = await postgres().createDatabase();
  proxy = await startPostgresProxy(direct);
  server = await startTestServer({
    config: { database: proxy.url },
    runner: { before: () => new Promise((resolve) => setTimeout(resolve, stepMs)) },
    extensions: [createTraining],
  });
});
afterAll(async () => {
  proxy.faults.refuse = false;
  await server.close();
  await proxy.faults.close();
});

const say = (text: string) => ({ messages: [{ role: "user", content: `say:${text}` }] });

/** Takes the database away while `work` runs. */
async function without(work: () => Promise<void>): Promise<void> {
  proxy.faults.refuse = true;
  proxy.faults.cutAll();
  try {
    await work();
  } finally {
    proxy.faults.refuse = false;
  }
}

async function newToken(): Promise<string> {
  const { TokenStore } = await import("../../../src/store/tokens.ts");
  const { openPostgres } = await import("../../../src/store/postgres/open.ts");
  const store = await openPostgres(direct);
  const { secret } = await new TokenStore(store).create({ name: "t", scopes: ["admin"], lifetime: null });
  await store.close();
  return secret;
}

it("keeps tokens and models there", async () => {
  const authorization = `Bearer ${await newToken()}`;
  expect((await server.get("/v1/preview/models", { authorization })).status).toBe(200);
  expect((await server.post("/v1/chat/completions", say("ok"), { authorization })).status).toBe(200);
  const names = await query(direct, "SELECT name FROM tokens ORDER BY name");
  expect(names).toEqual([{ name: "local key" }, { name: "t" }]);
});

it("serves the base model to --api-key, and ends running streams, without the database", async () => {
  stepMs = 20;
  const streaming = server.stream(say("a long reply that goes on"));
  await without(async () => {
    const reply = await server.chat(say("still here"));
    expect(reply.choices[0].message.content).toBe("still here");
    const text = (await streaming).map((event) => event.choices[0]?.delta.content ?? "").join("");
    expect(text).toBe("a long reply that goes on");
    expect((await server.get("/health")).status).toBe(200);
  });
  stepMs = 0;
});

it("answers 503 where it needs the database, and recovers", async () => {
  const token = await newToken();
  const model = { entity: "e", project: "p", name: "n", base_model: "fake" };
  const requests = [
    () => server.get("/v1/models", { authorization: `Bearer ${token}` }),
    () => server.post("/v1/chat/completions", say("no"), { authorization: `Bearer ${token}` }),
    () => server.post("/v1/chat/completions", { ...say("no"), model: "a-policy" }),
    () => server.get("/v1/preview/models"),
    () => server.get("/v1/preview/training-jobs/x"),
    () => server.post("/v1/preview/models", model),
  ];
  await without(async () => {
    const since = performance.now();
    for (const response of await Promise.all(requests.map((send) => send()))) {
      expect([response.url, response.status]).toEqual([response.url, 503]);
      expect(response.headers.get("retry-after")).toBe("2");
      expect((await response.json()).error).toMatchObject({
        message: "The database cannot be reached. Try again later.",
        type: "ServiceUnavailableError",
      });
    }
    expect(performance.now() - since).toBeGreaterThan(2_500);
  });
  const statuses = async () => Promise.all(requests.slice(0, 5).map(async (send) => (await send()).status));
  await expect.poll(statuses).toEqual([200, 200, 404, 200, 404]);
  expect((await server.get("/v1/models", { authorization: `Bearer ${API_KEY}` })).status).toBe(200);
});
