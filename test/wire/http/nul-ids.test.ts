// U+0000 in ids. PostgreSQL cannot hold it, so every route refuses it before it looks for anything.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createTraining } from "../../../src/app/training.ts";
import { shared } from "../../support/shared-server.ts";
import { PROJECT_STORE, storesOf } from "../../support/stores.ts";
import { API_KEY, looseFetch, startTestServer } from "../../support/test-server.ts";
import { LLAMA } from "../../support/training-service.ts";

const stores = storesOf(PROJECT_STORE);
const server = shared(async () => {
  const database = await stores.database("nul-ids");
  return startTestServer({
    config: { database, apiKey: [API_KEY] },
    model: { checkpoint: { folder: LLAMA, weightType: "float32" } },
    extensions: [createTraining],
  });
});

const { paths } = JSON.parse(readFileSync(new URL("../../../openapi.json", import.meta.url), "utf8")) as {
  paths: Record<string, Record<string, unknown>>;
};
const statusOf = (path: string) => (/^\/v1\/(preview|training)\//.test(path) ? 422 : 400);

async function send(method: string, path: string, body?: unknown) {
  const authorization = `Bearer ${API_KEY}`;
  const json = { headers: { authorization, "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await looseFetch(server.url + path, {
    method,
    ...(body === undefined ? { headers: { authorization } } : json),
  });
  return { status: answer.status, text: await answer.text() };
}

const withIds = Object.entries(paths).flatMap(([path, methods]) =>
  path.includes("{") ? Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })) : [],
);

it("is looked for in every path with an id", () => expect(withIds.length).toBeGreaterThan(25));

it.each(withIds)("is refused in $method $path", async ({ method, path }) => {
  for (const id of ["%00", "resp_%00", "a%00b"]) {
    const { status, text } = await send(method, path.replaceAll(/\{\w+\}/g, id), method === "POST" ? {} : undefined);
    expect(status, text).toBe(statusOf(path));
    expect(text).toContain("U+0000");
  }
});

const hello = [{ role: "user", content: "hi" }];
const NUL = "a\0b";
const uuid = "00000000-0000-0000-0000-000000000000";

it.each<[string, string, unknown]>([
  ["previous_response_id", "/v1/responses", { input: "hi", previous_response_id: NUL }],
  ["input.0.id", "/v1/responses", { input: [{ id: NUL, role: "user", content: "hi" }] }],
  ["input.1.id", "/v1/responses", { input: [...hello, { type: "item_reference", id: NUL }] }],
  ["model", "/v1/responses", { model: NUL, input: "hi" }],
  ["model", "/v1/chat/completions", { model: NUL, messages: hello }],
  ["model", "/v1/messages", { model: NUL, max_tokens: 1, messages: hello }],
  ["request_id", "/v1/completions", { prompt: "hi", request_id: NUL }],
  ["model", "/tokenize", { model: NUL, prompt: "hi" }],
  ["from_job", "/v1/preview/training-jobs", { model_id: uuid, from_job: NUL }],
  ["model_id", "/v1/preview/training-jobs", { model_id: NUL, trajectory_groups: [] }],
  ["model_id", "/v1/preview/sft-training-jobs", { model_id: NUL, training_trajectories: [] }],
  ["from.model_id", "/v1/preview/models", { project: "p", name: "n", from: { model_id: NUL } }],
  ["request_id", "/v1/training/runs:resolve", { request_id: NUL, spec: {} }],
])("is refused in %s of POST %s", async (field, path, body) => {
  const { status, text } = await send("POST", path, body);
  expect(status, text).toBe(statusOf(path));
  expect(text).toContain(field);
});

it("is no matter in texts", async () => {
  const { status, text } = await send("POST", "/v1/responses", { input: "say:a\0", metadata: { note: NUL } });
  expect(status, text).toBe(200);
  const { id } = JSON.parse(text) as { id: string };
  expect((await send("GET", `/v1/responses/${id}`)).text).toBe(text);
  expect((await send("GET", `/v1/responses/${id}/input_items`)).text).toContain("say:a\\u0000");
});

it("is refused in queries", async () => {
  expect(await send("GET", "/v1/responses/resp_1/input_items?after=%00")).toMatchObject({ status: 400 });
  expect(await send("GET", "/v1/preview/models?after=%00")).toMatchObject({ status: 422 });
});
