// Requests byte for byte as the Python client of OpenPipe ART (on openai 2.x) puts them on the wire, where they are not
// what one would write by hand: a JSON content type without a body, every field spelled out, plain keep-alive requests.

import { request as httpRequest } from "node:http";
import { expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer());

const ART_HEADERS = {
  "accept-encoding": "gzip, deflate",
  authorization: "Bearer ann",
  accept: "application/json",
  "user-agent": "Client/Python 2.54.0",
  "x-stainless-lang": "python",
  "x-stainless-async": "false",
  "x-stainless-retry-count": "0",
  "x-stainless-read-timeout": "600",
};

/** `length: true` says content-length: 0 where there is no body, as the client does for POST but not for DELETE. */
function send(method: string, path: string, { body = "", length = false } = {}) {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  return new Promise<{ status: number; json: any }>((resolve, reject) => {
    const sized = body !== "" || length ? { "content-length": String(Buffer.byteLength(body)) } : {};
    const type = method === "GET" ? {} : { "content-type": "application/json" };
    const request = httpRequest(server.url + path, { method, headers: { ...ART_HEADERS, ...type, ...sized } });
    if (body === "" && !length) request.useChunkedEncodingByDefault = false;
    request.on("error", reject);
    request.on("response", async (response) => {
      const chunks = await response.toArray();
      resolve({ status: response.statusCode!, json: JSON.parse(Buffer.concat(chunks).toString()) });
    });
    request.end(body);
  });
}

const register = (name: string) =>
  send("POST", "/v1/preview/models", {
    body: `{"entity":null,"project":"p","name":"${name}","base_model":"tiny","return_existing":true}`,
  });

it("deletes a model with a JSON content type and no body", async () => {
  const { json: model } = await register("gone");
  const deleted = await send("DELETE", `/v1/preview/models/${model.id}`);
  expect(deleted).toEqual({
    status: 200,
    json: { model_id: model.id, deleted_checkpoints: 1, deleted_run: true },
  });
  expect((await send("GET", `/v1/preview/models/${model.id}/checkpoints?limit=1&order=desc`)).status).toBe(404);
});

it("cancels a job with a JSON content type and an empty body", async () => {
  const { json: model } = await register("cancelled");
  const { json: job } = await send("POST", "/v1/preview/training-jobs", {
    body: JSON.stringify({ model_id: model.id, trajectory_groups: [], experimental_config: null }),
  });
  const cancelled = await send("POST", `/v1/preview/training-jobs/${job.id}/cancel`, { length: true });
  expect(cancelled).toMatchObject({ status: 200, json: { id: job.id } });
});

it("deletes checkpoints with a body on DELETE, and says when it is missing", async () => {
  const { json: model } = await register("pruned");
  const path = `/v1/preview/models/${model.id}/checkpoints`;
  const pruned = await send("DELETE", path, { body: '{"steps":[0,5]}' });
  expect(pruned).toMatchObject({ status: 200, json: { deleted_count: 0, not_found_steps: [5] } });
  const empty = await send("DELETE", path);
  expect(empty).toMatchObject({ status: 422, json: { detail: [{ loc: ["body"], type: "missing" }] } });
});

it("answers every 422 with the list of places that its error classes show", async () => {
  const malformed = await send("POST", "/v1/preview/models", { body: '{"project": ' });
  expect(malformed).toMatchObject({ status: 422, json: { detail: [{ loc: ["body"], type: "json_invalid" }] } });
  const unknown = await send("POST", "/v1/preview/models", {
    body: '{"entity":null,"project":"p","name":"n","base_model":"nope","return_existing":true}',
  });
  expect(unknown.status).toBe(422);
  expect(unknown.json.detail).toEqual([
    { loc: ["body", "base_model"], type: "value_error", msg: expect.stringContaining("known: tiny") },
  ]);
  expect(unknown.json.error).toMatchObject({ code: 422, param: "base_model" });
});

it("rejects NaN and Infinity in rewards, naming the place, and ignores them elsewhere", async () => {
  const { json: model } = await register("nan");
  const body = (reward: string, note: string) =>
    `{"model_id":"${model.id}","dry_run":true,"trajectory_groups":[{"trajectories":[{"messages_and_choices":` +
    `[{"role":"user","content":"NaN \\"NaN\\" -Infinity"}],"reward":${reward},"metadata":{"note":${note}}}]}]}`;
  for (const reward of ["NaN", "Infinity", "-Infinity"]) {
    const { status, json } = await send("POST", "/v1/preview/training-jobs", { body: body(reward, "1") });
    expect([status, json.detail]).toMatchObject([
      422,
      [{ loc: ["body", "trajectory_groups", 0, "trajectories", 0, "reward"], type: "finite_number" }],
    ]);
  }
  expect((await send("POST", "/v1/preview/training-jobs", { body: body("1", "NaN") })).status).toBe(200);
  const broken = await send("POST", "/v1/preview/training-jobs", { body: body("NaNs", "1") });
  expect(broken).toMatchObject({ status: 422, json: { detail: [{ type: "json_invalid" }] } });
});
