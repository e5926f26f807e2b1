// Who may do what at the training endpoints, and which ids they know.

import { describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { finishedJob, jobBody, newModel } from "./training-requests.ts";
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

  /** Requests about a model and its job, by what they do. Those that change something are harmless when repeated. */
  const requests = (id: string, job: string) => {
    const model = `/v1/preview/models/${id}`;
    return {
      read: [
        ["GET", model],
        ["GET", `${model}/checkpoints`],
        ["GET", `${model}/checkpoints/latest`],
        ["GET", `${model}/curves`],
        ["GET", `/v1/preview/training-jobs/${job}/curves`],
        ["HEAD", `${model}/checkpoints/0/adapter`],
        ["GET", `/v1/preview/training-jobs/${job}`],
        ["GET", `/v1/preview/training-jobs/${job}/events`],
        ["POST", "/v1/preview/models", { project: "p", name: "f", from: { model_id: id }, return_existing: true }],
      ],
      train: [
        ["POST", `${model}/rollback`, { step: 0 }],
        ["PUT", `${model}/note`, { text: "x" }],
        ["PUT", `/v1/preview/training-jobs/${job}/note`, { text: "x" }],
        ["POST", `${model}/log`, { split: "val", trajectory_groups: [] }],
        ["POST", "/v1/preview/training-jobs", { ...jobBody(id, []), dry_run: true }],
        ["POST", "/v1/preview/sft-training-jobs", { model_id: id, training_data: [], dry_run: true }],
      ],
      end: [
        ["DELETE", `${model}/checkpoints`, { steps: [0] }],
        ["POST", `/v1/preview/training-jobs/${job}/cancel`],
        ["DELETE", model],
      ],
    } as const;
  };
  const lists = (name: string, id: string) =>
    [`/v1/preview/models?name=${name}`, `/v1/preview/training-jobs?model_id=${id}`] as const;
  const finished = async () => {
    const { id, name } = await newModel(server);
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
    await finishedJob(server, job.id);
    return { id, name, job: job.id as string };
  };

  it("keeps workspaces apart: an id of another workspace is a 404", async () => {
    const { id, name, job } = await finished();
    const { read, train, end } = requests(id, job);
    for (const [method, path, body] of [...read, ...train, ...end]) {
      const answer = await server.call(method, path, body, { as: "bob" });
      expect(answer.status, `${method} ${path}`).toBe(404);
    }
    for (const path of lists(name, id)) {
      expect((await server.call("GET", path, undefined, { as: "bob" })).json.data).toEqual([]);
      expect((await server.call("GET", path)).json.data).toHaveLength(1);
    }
    const { policies } = server.bench.service;
    expect(await policies.find(name, "1")).toMatchObject({ step: 1 });
    expect(await policies.find(name, "b")).toBeNull();
    expect(await policies.find(`wandb-artifact:///ann/p/${name}`, "b")).toBeNull();
  });

  it("gives two tokens of a workspace the same", async () => {
    const { id, name, job } = await finished();
    for (const path of lists(name, id)) {
      const [ann, amy] = [await server.call("GET", path), await server.call("GET", path, undefined, { as: "amy" })];
      expect(amy.json.data).toHaveLength(1);
      expect(amy.json).toEqual(ann.json);
    }
    // the same entity, so a program finds its model with another token
    const again = { project: "p", name, base_model: "tiny", return_existing: true };
    expect((await server.call("POST", "/v1/preview/models", again, { as: "amy" })).json.id).toBe(id);
    const key = { "idempotency-key": `of-${name}` };
    const [one, two] = [
      await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []), { headers: key }),
      await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []), { headers: key, as: "amy" }),
    ];
    expect(two.json.id).toBe(one.json.id);
    await finishedJob(server, one.json.id);
    const { read, train, end } = requests(id, job);
    for (const [method, path, body] of [...read, ...train, ...end]) {
      const answer = await server.call(method, path, body, { as: "amy" });
      expect(answer.status, `${method} ${path}`).toBe(200);
    }
    expect((await server.call("GET", `/v1/preview/models/${id}`)).status).toBe(404);
  });

  it("shows an admin everything; the admin may cancel and delete, but not train", async () => {
    const { id, name, job } = await finished();
    const { read, train, end } = requests(id, job);
    const as = { as: "root" } as const;
    for (const path of lists(name, id))
      expect((await server.call("GET", path, undefined, as)).json.data).toHaveLength(1);
    for (const [method, path, body] of read) {
      expect((await server.call(method, path, body, as)).status, `${method} ${path}`).toBe(200);
    }
    const forks = await server.call("GET", "/v1/preview/models?name=f&entity=root", undefined, as);
    expect(forks.json.data).toHaveLength(1);
    for (const [method, path, body] of train) {
      const answer = await server.call(method, path, body, as);
      expect(answer.status, `${method} ${path}`).toBe(403);
      expect(answer.json.error.message).toMatch(/belongs to another workspace/);
    }
    const own = await server.call("POST", "/v1/preview/models", { project: "p", name, base_model: "tiny" }, as);
    const { policies } = server.bench.service;
    expect((await policies.find(name, "r", true))!.model.id).toBe(own.json.id);
    await server.call("DELETE", `/v1/preview/models/${own.json.id}`, undefined, as);
    expect((await policies.find(name, "r", true))!.model.id).toBe(id);
    expect((await policies.find(`wandb-artifact:///ann/p/${name}:step0`, "r", true))!.model.id).toBe(id);
    expect(await policies.find(name, "r")).toBeNull();
    for (const [method, path, body] of end) {
      expect((await server.call(method, path, body, as)).status, `${method} ${path}`).toBe(200);
    }
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
