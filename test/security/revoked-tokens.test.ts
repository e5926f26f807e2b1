// A token that was revoked or has expired, and a session that has ended, must not go on reading what was open already:
// not here, and not on another server of the same database.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { trainingRoutes } from "../../src/api/training/routes.ts";
import type { CreateExtension } from "../../src/app/serve.ts";
import { shared } from "../support/shared-server.ts";
import { STORES, storesOf } from "../support/stores.ts";
import { says, startTestServer, type TestServer } from "../support/test-server.ts";
import { heldTrainer, trainingBench } from "../support/training-service.ts";
import { goodGroup, jobBody } from "../wire/training/training-requests.ts";

/** What the promise allows. */
const MOST_MS = 5000;

const { trainer, hold, letGo } = heldTrainer();
hold();
const training: CreateExtension = async () => {
  const bench = await trainingBench({ trainer });
  return { routes: trainingRoutes(bench.service, { maxBytes: 2 ** 20 }), close: () => bench.close() };
};
/** Generations stay in their first step. */
const before = () => new Promise<void>((resolve) => stuck.push(resolve));
const stuck: (() => void)[] = [];
const server = shared(async () => {
  const started = await startTestServer({ extensions: [training], runner: { before } });
  const close = () => {
    letGo();
    for (const resolve of stuck.splice(0)) resolve();
    return started.close();
  };
  return { ...started, close };
});

interface Token {
  id: string;
  token: string;
}

async function newToken(at: TestServer, more: object = {}): Promise<Token> {
  const scopes = ["admin", "inference", "training"];
  return (await at.post("/v1/tokens", { name: "t", scopes, workspace: "team", ...more })).json();
}

/** A reply that stays open: `ended` resolves with the whole of it. */
async function open(at: TestServer, path: string, headers: Record<string, string>, body?: object) {
  const response = await fetch(at.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, ended: response.text() };
}

const bearer = ({ token }: Token) => ({ authorization: `Bearer ${token}` });

async function openJob(at: TestServer, headers: Record<string, string>): Promise<string> {
  const model = { project: "p", name: "m", base_model: "tiny", return_existing: true };
  const { id } = await (await at.post("/v1/preview/models", model, headers)).json();
  const job = await at.post("/v1/preview/training-jobs", jobBody(id, [goodGroup()]), headers);
  return (await job.json()).id;
}

/** Every kind of stream. */
async function openAll(at: TestServer, headers: Record<string, string>, job: string) {
  const talk = { messages: says("x"), max_tokens: 5, stream: true };
  return {
    logs: await open(at, "/v1/logs", headers),
    engine: await open(at, "/v1/engine", headers),
    events: await open(at, `/v1/preview/training-jobs/${job}/events`, headers),
    news: await open(at, "/v1/preview/events", headers),
    chat: await open(at, "/v1/chat/completions", headers, talk),
    completion: await open(at, "/v1/completions", headers, { prompt: "x", max_tokens: 5, stream: true }),
    responses: await open(at, "/v1/responses", headers, { input: "x", stream: true }),
    messages: await open(at, "/v1/messages", headers, { model: "fake", ...talk }),
  };
}

async function endsWith(message: string, streams: Awaited<ReturnType<typeof openAll>>, since: number): Promise<void> {
  for (const [name, stream] of Object.entries(streams)) {
    expect(stream.status, name).toBe(200);
    const last = (await stream.ended)
      .trimEnd()
      .split("\n\n")
      .filter((event) => event !== "data: [DONE]")
      .at(-1);
    expect(last, name).toContain(message);
    expect(last, name).toContain("data: {");
  }
  expect(performance.now() - since).toBeLessThan(MOST_MS);
}

describe("what is open", () => {
  it("ends with the token, and the training job goes on", async () => {
    const token = await newToken(server);
    const other = await newToken(server, { name: "other" });
    const job = await openJob(server, bearer(token));
    const streams = await openAll(server, bearer(token), job);
    const kept = await open(server, "/v1/engine", bearer(other));
    const whole = server.post("/v1/chat/completions", { messages: says("x"), max_tokens: 5 }, bearer(token));
    await expect.poll(() => server.service.live.all().length).toBe(5);
    const since = performance.now();
    expect(
      (await fetch(`${server.url}/v1/tokens/${token.id}`, { method: "DELETE", headers: bearer(other) })).status,
    ).toBe(204);
    await endsWith("The token was revoked.", streams, since);
    expect((await whole).status).toBe(401);
    const { status } = await (await server.get(`/v1/preview/training-jobs/${job}`, bearer(other))).json();
    expect(status).toBe("RUNNING");
    const state = await Promise.race([
      kept.ended.then(() => "ended"),
      new Promise((resolve) => setImmediate(resolve, "open")),
    ]);
    expect(state).toBe("open");
  });

  it("ends when the token expires, also as x-api-key", async () => {
    const first = await newToken(server);
    const job = await openJob(server, bearer(first));
    const token = await newToken(server, { lifetime_s: 3 });
    const streams = await openAll(server, { "x-api-key": token.token }, job);
    await endsWith("The token has expired.", streams, performance.now());
  });

  it("ends with the session, whatever header its key came in", async () => {
    const token = await newToken(server);
    const job = await openJob(server, bearer(token));
    const { code } = await (await server.post("/v1/session-codes", {}, bearer(token))).json();
    const { key } = await (await server.post("/v1/sessions", { code })).json();
    const streams = await openAll(server, { "x-api-key": key }, job);
    const since = performance.now();
    const left = await fetch(`${server.url}/v1/sessions/current`, { method: "DELETE", headers: { "x-api-key": key } });
    expect(left.status).toBe(204);
    await endsWith("The session is over", streams, since);
  });

  it("does not hold up a server that stops", async () => {
    const stopping = await startTestServer({ extensions: [training] });
    const headers = bearer(await newToken(stopping));
    const job = await openJob(stopping, headers);
    const events = await open(stopping, `/v1/preview/training-jobs/${job}/events`, headers);
    const news = await open(stopping, "/v1/preview/events", headers);
    const closing = stopping.close();
    await Promise.all([events.ended, news.ended]);
    await closing;
  });
});

describe.each(STORES)("on %s", (kind) => {
  const stores = storesOf(kind);

  it("a token that another server revokes ends what is open here", async () => {
    const data = mkdtempSync(join(tmpdir(), "revoked-"));
    const config = { data, database: await stores.database(data) };
    const [here, there] = [await startTestServer({ config }), await startTestServer({ config })];
    const token = await newToken(here);
    const engine = await open(here, "/v1/engine", bearer(token));
    const since = performance.now();
    const { status } = await fetch(`${there.url}/v1/tokens/${token.id}`, { method: "DELETE", headers: bearer(token) });
    expect(status).toBe(204);
    expect(await engine.ended).toMatch(/event: error\ndata: \{"error":\{"message":"The token was revoked\.".*\n\n$/);
    expect(performance.now() - since).toBeLessThan(MOST_MS);
    await here.close();
    await there.close();
  });
});
