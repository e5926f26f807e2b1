// Watching the server over HTTP: the engine's numbers, the requests in progress, ending one, and the log.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Static } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EngineBody } from "../../../src/api/serving/engine-monitor.ts";
import type { EngineState } from "../../../src/client/types.ts";
import { openDataDir } from "../../../src/store/data-dir.ts";
import { TokenStore } from "../../../src/store/tokens.ts";
import { EMBEDDED_ENGINE, needing } from "../../support/needs.ts";
import { expectShape } from "../../support/shared-server.ts";
import { type Loose, looseFetch, says, startTestServer, type TestServer } from "../../support/test-server.ts";

const data = mkdtempSync(join(tmpdir(), "flywheel-engine-"));
const store = openDataDir(data);
let server: TestServer;
let guest: string;

beforeAll(async () => {
  const config = { data, logLevel: "info" as const };
  server = await startTestServer({ config, runner: { before: () => slow }, maxLoras: 2 });
  const token = { name: "guest", scopes: ["inference" as const], lifetime: null };
  guest = (await new TokenStore(store).create(token)).secret;
});
afterAll(async () => {
  await server.close();
  await store.close();
});

/** Holds back the engine's steps while it is not resolved. */
let slow: Promise<void> | undefined;

/** Runs `work` while nothing moves in the engine. */
async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
  let go = () => {};
  slow = new Promise((resolve) => {
    go = resolve;
  });
  try {
    return await work();
  } finally {
    slow = undefined;
    go();
  }
}

const as = (key: string) => ({ authorization: `Bearer ${key}` });
const engine = async (headers = {}) => (await server.get("/v1/engine", headers)).json();

describe("GET /v1/engine", () => {
  it("answers as it is documented, and as the client has it", async () => {
    const documented: Static<typeof EngineBody> = await engine();
    expectShape(EngineBody, documented);
    const typed: EngineState = documented; // the compiler compares them
    expect(typed.requests).toEqual([]);
  });

  it("shows requests in progress to their sender and to admins, and what they have done", async () => {
    await whileHeld(async () => {
      const body = { messages: says("x"), max_tokens: 5 };
      const mine = server.post("/v1/chat/completions", body, { "x-request-id": "mine" });
      const theirs = server.post("/v1/chat/completions", body, { ...as(guest), "x-request-id": "theirs" });
      await expect.poll(async () => (await engine()).requests.length).toBe(2);
      const all = await engine();
      const rows = Object.fromEntries(all.requests.map((row: { id: string }) => [row.id, row]));
      expect(rows.theirs).toMatchObject({ who: "guest", model: "fake", output: 0, choices: 1, priority: 0 });
      expect(rows.mine.prompt).toBeGreaterThan(3);
      expect(["waiting", "prefill"]).toContain(rows.mine.state);
      expect(rows.mine.age_ms).toBeGreaterThanOrEqual(0);
      const seen = await engine(as(guest));
      expect(seen.requests.map((row: { id: string }) => row.id)).toEqual(["theirs"]);
      slow = undefined;
      return [mine, theirs];
    }).then((sent) => Promise.all(sent));
    await expect.poll(async () => (await engine()).requests).toEqual([]);
  });

  // a remote engine tells neither its steps nor the size of its cache
  needing(EMBEDDED_ENGINE).it("has a history of seconds, the engine's steps, its cache and its slots", async () => {
    const start = Date.now();
    await server.chat({ messages: says("hello"), max_tokens: 5 });
    // read once a second
    const read = async (has: (now: Loose) => boolean) => expect.poll(async () => has(await engine())).toBe(true);
    await read(({ history }) => history.length > 1 && history.some((point: Loose) => point.tokens_per_s > 0));
    await read(({ history }) => history.some((point: Loose) => point.ttft_p50 !== null));
    await read(({ steps }) => steps.some(({ prefill }: Loose) => prefill > 3));
    await read(({ steps }) => steps.some(({ decode }: Loose) => decode === 1));
    const asked = Date.now();
    const now = await engine();
    expect(now).toMatchObject({ object: "engine", running: 0, waiting: 0, adapters: [null, null], replicas: [] });
    expect(now.cache).toMatchObject({ used: 0, fraction: 0, total: expect.any(Number) });
    expect(now.now).toBeGreaterThanOrEqual(asked);
    expect(now.now).toBeLessThanOrEqual(Date.now());
    // clocks that round differ by a little
    for (const { at } of now.steps) expect(at).toBeLessThan(now.now + 1000);
    expect(now.steps.at(-1).at).toBeGreaterThan(start - 1000);
  });

  needing(EMBEDDED_ENGINE).it("streams a snapshot, a point and the new steps every second", async () => {
    const reply = await looseFetch(`${server.url}/v1/engine`, {
      headers: { ...as("test-key"), accept: "text/event-stream" },
    });
    expect(reply.headers.get("content-type")).toMatch(/event-stream/);
    const events: { event: string; data: Record<string, unknown> }[] = [];
    const reading = (async () => {
      let text = "";
      for await (const chunk of reply.body!) {
        text += Buffer.from(chunk).toString();
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const [event, data] = text.slice(0, end).split("\n");
          text = text.slice(end + 2);
          if (data) events.push({ event: event!.slice(7), data: JSON.parse(data.slice(6)) });
        }
        const points = events.filter(({ event }) => event === "point");
        const isIdle = points.some(({ data }) => data.running === 0);
        if (points.length >= 2 && isIdle && events.some(({ event }) => event === "steps")) return;
      }
    })();
    await server.chat({ messages: says("hello"), max_tokens: 5 });
    await reading;
    expect(events[0]).toMatchObject({ event: "snapshot", data: { object: "engine", requests: expect.any(Array) } });
    expect(events[0]!.data.history).toBeUndefined();
    const idle = events.find(({ event, data }) => event === "point" && data.running === 0);
    expect(idle!.data).toMatchObject({ at: expect.any(Number), running: 0 });
  });

  it("ends a request for its sender or an admin, and says so to the client", async () => {
    await whileHeld(async () => {
      const body = { messages: says("x"), max_tokens: 50 };
      const whole = server.post("/v1/chat/completions", body, { "x-request-id": "whole" });
      const streamed = server.post("/v1/chat/completions", { ...body, stream: true }, { "x-request-id": "streamed" });
      await expect.poll(async () => (await engine()).requests.length).toBe(2);
      const end = (id: string, key: string) =>
        looseFetch(`${server.url}/v1/engine/requests/${id}`, { method: "DELETE", headers: as(key) });
      expect((await end("whole", guest)).status).toBe(404);
      for (const id of ["whole", "streamed"]) expect((await end(id, "test-key")).status).toBe(204);
      const answer = await whole;
      expect(answer.status).toBe(409);
      expect(answer.headers.get("x-should-retry")).toBe("false");
      expect((await answer.json()).error.message).toMatch(/was ended/);
      expect(await (await streamed).text()).toMatch(/was ended.*\n\ndata: \[DONE\]/);
      expect((await end("whole", "test-key")).status).toBe(404);
    });
    await server.chat({ messages: says("y"), max_tokens: 2 });
  });

  it("names adapters to those who use them, and counts their requests", async () => {
    const folder = mkdtempSync(join(data, "adapter"));
    writeFileSync(join(folder, "adapter_config.json"), "{}");
    await server.post("/v1/load_lora_adapter", { lora_name: "tuned", lora_path: folder });
    await whileHeld(async () => {
      const sent = server.post("/v1/chat/completions", { model: "tuned", messages: says("x"), max_tokens: 2 });
      await expect
        .poll(async () => (await engine()).adapters)
        .toEqual([{ name: "tuned", requests: 1, idle_seconds: 0 }, null]);
      slow = undefined;
      return [sent];
    }).then((sent) => Promise.all(sent));
  });
});

it("needs a token", async () => {
  expect((await looseFetch(`${server.url}/v1/engine`)).status).toBe(401);
  expect((await looseFetch(`${server.url}/v1/logs`)).status).toBe(401);
  expect((await server.get("/v1/logs", as(guest))).status).toBe(403);
});

it("streams the log to admins, the last lines first", async () => {
  const reply = await server.get("/v1/logs");
  const lines: Record<string, unknown>[] = [];
  let failed = false;
  for await (const chunk of reply.body!) {
    for (const block of Buffer.from(chunk).toString().split("\n\n")) {
      if (block.startsWith("event: line")) lines.push(JSON.parse(block.split("\n")[1]!.slice(6)));
    }
    if (lines.some(({ message }) => message === "a client sends tools")) break;
    if (!failed) await server.chat({ messages: says("x"), max_tokens: 1, tools: [TOOL] });
    failed = true;
  }
  expect(lines[0]).toMatchObject({ level: "info", message: "starting", at: expect.stringMatching(/^20\d\d-/) });
  expect(lines.at(-1)).toMatchObject({ level: "warn", client: "--api-key #1" });
});

const TOOL = { type: "function", function: { name: "look", parameters: {} } };
