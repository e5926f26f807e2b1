// Who may do what at the training endpoints, and which ids they know.

import { describe, expect, it } from "vitest";
import { shared } from "./shared-server.ts";
import { jobBody, newModel } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

describe("access", () => {
  it("needs a token with the scope training", async () => {
    for (const [as, status] of [
      [null, 401],
      ["guest", 403],
      ["ann", 200],
    ] as const) {
      const answer = await server.call("GET", "/v1/preview/models", undefined, { as });
      expect(answer.status).toBe(status);
      if (status !== 200) expect(answer.json).toMatchObject({ error: { code: status }, detail: expect.any(String) });
    }
  });

  it("finds ids in any case, as they are UUIDs", async () => {
    const { id } = await newModel(server);
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id.toUpperCase(), []))).json;
    expect((await server.call("GET", `/v1/preview/models/${id.toUpperCase()}`)).json.id).toBe(id);
    expect((await server.call("GET", `/v1/preview/training-jobs/${job.id.toUpperCase()}`)).json.id).toBe(job.id);
    const jobs = await server.call("GET", `/v1/preview/training-jobs?model_id=${id.toUpperCase()}`);
    expect(jobs.json.data).toMatchObject([{ id: job.id }]);
    const log = { split: "val", trajectory_groups: [] };
    expect((await server.call("POST", `/v1/preview/models/${id.toUpperCase()}/log`, log)).status).toBe(200);
    const copy = { project: "p", name: `copy-${id}`, from: { model_id: id.toUpperCase() } };
    expect((await server.call("POST", "/v1/preview/models", copy)).status).toBe(200);
  });

  it("keeps owners apart: the id of another owner is a 404", async () => {
    const { id, name } = await newModel(server);
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
    const bob = { as: "bob" } as const;
    for (const [method, path, body] of [
      ["GET", `/v1/preview/models/${id}`],
      ["DELETE", `/v1/preview/models/${id}`],
      ["GET", `/v1/preview/models/${id}/checkpoints`],
      ["DELETE", `/v1/preview/models/${id}/checkpoints`, { steps: [0] }],
      ["POST", `/v1/preview/models/${id}/rollback`, { step: 0 }],
      ["POST", `/v1/preview/models/${id}/log`, { split: "val", trajectory_groups: [] }],
      ["POST", "/v1/preview/training-jobs", jobBody(id, [])],
      ["POST", "/v1/preview/models", { project: "p", name: "f", from: { model_id: id } }],
      ["GET", `/v1/preview/training-jobs/${job.id}`],
      ["GET", `/v1/preview/training-jobs/${job.id}/events`],
      ["POST", `/v1/preview/training-jobs/${job.id}/cancel`],
    ] as const) {
      const answer = await server.call(method, path, body, bob);
      expect(answer.status, `${method} ${path}`).toBe(404);
    }
    const names = (await server.call("GET", `/v1/preview/models?name=${name}`, undefined, bob)).json.data;
    expect(names).toEqual([]);
    expect((await server.call("GET", `/v1/preview/models?name=${name}`)).json.data).toHaveLength(1);
  });

  it("answers probes and base models without a token", async () => {
    const open = { as: null } as const;
    expect((await server.call("GET", "/v1/preview/base-models", undefined, open)).json).toEqual(["tiny"]);
    expect((await server.call("GET", "/v1/health", undefined, open)).status).toBe(200);
    const check = await server.call("GET", "/v1/system-check", undefined, open);
    expect(check.status).toBe(200);
    expect(check.json).toMatchObject({ api: true, database: { success: true, errors: [] } });
  });
});
