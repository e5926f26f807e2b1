// Whoever sends a costly request must be able to end it at any moment, also before the engine has it, and nobody may end
// those of others.
import { afterEach, describe, expect, it, vi } from "vitest";
import type { GrammarService } from "../../src/grammar/grammar-service.ts";
import { shared } from "../support/shared-server.ts";
import { API_KEY, type LooseResponse, looseFetch, says, startTestServer } from "../support/test-server.ts";

const OTHER = "other-key";

/** Compiling takes until the test lets it go on, whoever leaves. */
const compiling: (() => void)[] = [];
const letGo = () => {
  for (const resolve of compiling.splice(0)) resolve();
};
afterEach(letGo);
const slow: Pick<GrammarService, "compile"> = {
  compile: () => new Promise((resolve) => compiling.push(() => resolve(null))),
};
/** While set, the engine makes no step. */
let held: Promise<void> | undefined;
const before = () => held;

const server = shared(() =>
  startTestServer({ config: { apiKey: [API_KEY, OTHER] }, model: { grammars: slow as GrammarService } }),
);
const engine = shared(() => startTestServer({ config: { apiKey: [API_KEY, OTHER] }, runner: { before } }));

async function end(id: string, key = API_KEY, at: { url: string } = server): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return (await looseFetch(`${at.url}/v1/engine/requests/${encodeURIComponent(id)}`, { method: "DELETE", headers }))
    .status;
}

/** Ends the request as soon as it is there. */
async function ended(sent: Promise<LooseResponse>, id: string, at: { url: string } = server): Promise<LooseResponse> {
  await expect.poll(() => end(id, API_KEY, at), { timeout: 20_000 }).toBe(204);
  return sent;
}

const choice = { structured_outputs: { choice: ["yes", "no"] } };
const chat = { messages: says("x"), max_tokens: 5 };

describe("DELETE while the constraint compiles", () => {
  it.each([
    ["/v1/chat/completions", { ...chat, ...choice }],
    ["/v1/chat/completions", { ...chat, ...choice, stream: true }],
    ["/v1/chat/completions/batch", { messages: [says("x")], max_tokens: 5, ...choice }],
    ["/v1/completions", { prompt: "x", ...choice }],
    ["/inference/v1/generate", { token_ids: [5], sampling_params: { max_tokens: 5, ...choice } }],
    ["/v1/structured_outputs/inspect", { text: "yes", prompt_token_ids: [5, 6], ...choice }],
  ])("ends %s", async (path, body) => {
    const reply = await ended(server.post(path, body, { "x-request-id": "early" }), "early");
    expect(reply.status).toBe(409);
    expect((await reply.json()).error.message).toMatch(/was ended/);
    // what it has begun still holds its place
    expect(server.service.admission.requests).toBe(1);
    letGo();
    await expect.poll(() => server.service.admission.requests).toBe(0);
    expect(await end("early")).toBe(404);
  });
});

describe("DELETE while a conversation is loaded", () => {
  it("ends /v1/responses", async () => {
    const first = await (await engine.post("/v1/responses", { input: "x", max_output_tokens: 3 })).json();
    let loaded = () => {};
    const chain = vi
      .spyOn(engine.service.conversations, "chain")
      .mockImplementation(() => new Promise((_, reject) => (loaded = () => reject(new Error("too late")))));
    const body = { input: "y", max_output_tokens: 3, previous_response_id: first.id };
    const reply = await ended(engine.post("/v1/responses", body, { "x-request-id": "loading" }), "loading", engine);
    chain.mockRestore();
    loaded();
    expect(reply.status).toBe(409);
    expect((await reply.json()).error.message).toMatch(/was ended/);
    expect(engine.service.admission.requests).toBe(0);
  });
});

describe("the id of a request", () => {
  it("is the body's request_id if there is no header", async () => {
    const body = { ...chat, ...choice, request_id: "from the body" };
    expect((await ended(server.post("/v1/chat/completions", body), "from the body")).status).toBe(409);
    letGo();
    const sent = server.post("/v1/chat/completions", body, { "x-request-id": "header" });
    expect((await ended(sent, "header")).status).toBe(409);
    expect(await end("from the body")).toBe(404);
  });

  it("means the caller's own requests, all of that id, and never another's", async () => {
    const send = (key: string) =>
      server.post(
        "/v1/completions",
        { prompt: "x", ...choice },
        { "x-request-id": "same", authorization: `Bearer ${key}` },
      );
    const inference = { name: "guest", scopes: ["inference"] };
    const guest = (await (await server.post("/v1/tokens", inference)).json()).token as string;
    const own = [send(API_KEY), send(API_KEY)];
    await expect.poll(() => server.service.live.all().length).toBe(2);
    expect(await end("same", guest)).toBe(404);
    const foreign = send(guest);
    await expect.poll(() => server.service.live.all().length).toBe(3);
    // the guest ends its own, and the others go on
    expect(await end("same", guest)).toBe(204);
    expect((await foreign).status).toBe(409);
    expect(await end("same", guest)).toBe(404);
    expect(server.service.live.all()).toHaveLength(2);
    // an admin means its own, too, and anybody's only without one
    const again = send(guest);
    await expect.poll(() => server.service.live.all().length).toBe(3);
    expect(await end("same", API_KEY)).toBe(204);
    expect((await Promise.all(own)).map(({ status }) => status)).toEqual([409, 409]);
    expect(await end("same", OTHER)).toBe(204);
    expect((await again).status).toBe(409);
  });
});

it("ends what waits for the engine and what streams", async () => {
  let start = () => {};
  held = new Promise((resolve) => {
    start = resolve;
  });
  const id = "late";
  const sent = engine.post("/v1/chat/completions", { ...chat, stream: true }, { "x-request-id": id });
  const reply = await ended(sent, id, engine);
  held = undefined;
  start();
  expect(await reply.text()).toMatch(/was ended.*\n\ndata: \[DONE\]/);
  await expect.poll(() => engine.service.admission.requests).toBe(0);
});
