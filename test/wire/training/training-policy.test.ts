// The life of a policy over the training endpoints: the call sequence and shapes of an ART client.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { LLAMA, stepFolder } from "../../support/training-service.ts";
import { artConfig, artPoll, finishedJob, goodGroup, jobBody, modelBody, newModel } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

describe("the life of a policy, as an ART client drives it", () => {
  it("register, train, read the step, log, prune, delete", async () => {
    const body = modelBody();
    const { json: model } = await server.call("POST", "/v1/preview/models/", body);
    expect(model).toMatchObject({ entity: "ann", project: "p", name: body.name, base_model: "tiny", run_id: null });
    expect((await server.call("POST", "/v1/preview/models", body)).json.id).toBe(model.id);
    const checkpoints = `/v1/preview/models/${model.id}/checkpoints`;
    const newest = async () => (await server.call("GET", `${checkpoints}?limit=1&order=desc`)).json;
    expect((await newest()).data[0].step).toBe(0);

    for (let step = 1; step <= 3; step++) {
      const answer = await server.call(
        "POST",
        "/v1/preview/training-jobs",
        jobBody(model.id, undefined, { experimental_config: artConfig }),
      );
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.json)).toEqual(
        expect.arrayContaining(["id", "model_id", "status", "progress", "error_message", "training_start"]),
      );
      const events = await artPoll(server, answer.json.id);
      expect(events.map(({ type }) => type)).toEqual(["gradient_step", "gradient_step", "training_ended"]);
      expect(events[0]!.data.num_sequences).toBe(2);
      expect((await newest()).data[0].step).toBe(step);
      expect((await server.bench.service.policies.find(`wandb-artifact:///ann/p/${body.name}`, "1"))?.step).toBe(step);
    }
    const log = await server.call("POST", `/v1/preview/models/${model.id}/log`, {
      ...{ model_id: model.id, split: "val", trajectory_groups: [goodGroup()] },
    });
    expect(log.status).toBe(200);
    expect((await newest()).data[0].metrics).toMatchObject({ "val/reward": 0.5, "val/solved": 1, "val/duration": 1.5 });

    expect((await server.call("DELETE", checkpoints, { steps: [0, 1, 2, 3, 9] })).json).toEqual({
      deleted_count: 3,
      not_found_steps: [9],
      kept_steps: [3],
    });
    expect((await server.call("DELETE", `/v1/preview/models/${model.id}`)).json).toEqual({
      model_id: model.id,
      deleted_checkpoints: 1,
      deleted_run: true,
    });
    expect((await server.call("GET", checkpoints)).status).toBe(404);
  });

  it("pages checkpoints by cursor and finds one by number", async () => {
    const { id } = await newModel(server);
    for (let i = 0; i < 2; i++) {
      await finishedJob(server, (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json.id);
    }
    const steps: number[] = [];
    let after = "";
    for (;;) {
      const { json } = await server.call("GET", `/v1/preview/models/${id}/checkpoints?limit=2&after=${after}`);
      expect(json.object).toBe("list");
      steps.push(...json.data.map(({ step }: { step: number }) => step));
      if (!json.has_more) break;
      after = json.data.at(-1).id;
      expect(json.last_id).toBe(after);
    }
    expect(steps).toEqual([0, 1, 2]);
    const last = (await server.call("GET", `/v1/preview/models/${id}/checkpoints/latest`)).json;
    expect(last.step).toBe(2);
    const empty = await server.call("GET", `/v1/preview/models/${id}/checkpoints?after=${last.id}`);
    expect(empty.json).toEqual({ object: "list", data: [], first_id: "", last_id: "", has_more: false });
    expect((await server.call("GET", `/v1/preview/models/${id}/checkpoints/7`)).status).toBe(404);
    expect((await server.call("GET", `/v1/preview/models/${id}/checkpoints?limit=101`)).status).toBe(422);
    const twice = await server.call("GET", "/v1/preview/models?name=a&name=b");
    expect(twice.status).toBe(422);
    expect(twice.json.detail[0].loc).toEqual(["query", "name"]);
  });

  it("downloads the adapter of a step as a tar archive", async () => {
    const { id } = await newModel(server);
    await finishedJob(server, (await server.call("POST", "/v1/preview/training-jobs", jobBody(id))).json.id);
    const get = (path: string, as = "ann", method = "GET") => {
      const headers = { authorization: `Bearer ${as}` };
      return fetch(`${server.url}/v1/preview/models/${id}/checkpoints/${path}/adapter`, { method, headers });
    };
    const folder = mkdtempSync(join(tmpdir(), "adapter-"));
    try {
      const response = await get("latest");
      expect(response.headers.get("content-disposition")).toBe('attachment; filename="step-1.tar"');
      const archive = Buffer.from(await response.arrayBuffer());
      expect(archive.length).toBe(Number(response.headers.get("content-length")));
      writeFileSync(join(folder, "step.tar"), archive);
      execFileSync("tar", ["xf", "step.tar"], { cwd: folder });
      for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
        expect(readFileSync(join(folder, name))).toEqual(readFileSync(join(stepFolder(server.bench, id, 1), name)));
      }
      expect(readdirSync(folder)).toHaveLength(3);
      const head = await get("1", "ann", "HEAD");
      expect(Number(head.headers.get("content-length"))).toBe(archive.length);
      expect((await get("7")).status).toBe(404);
      expect((await get("x")).status).toBe(404);
      expect((await get("1", "bob")).status).toBe(404);
      await expect.poll(() => server.bench.service.policies.inUse(id, 1)).toBe(false);
      rmSync(join(stepFolder(server.bench, id, 0), "adapter_config.json"));
      expect((await get("0")).status).toBe(409);
      expect(server.bench.service.policies.inUse(id, 0)).toBe(false);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("names a base model whose files are gone", async () => {
    const gone = mkdtempSync(join(tmpdir(), "base-"));
    cpSync(LLAMA, gone, { recursive: true });
    const other = await startTrainingServer({ baseFolder: gone });
    try {
      rmSync(gone, { recursive: true });
      const { status, json } = await other.call("POST", "/v1/preview/models", modelBody());
      expect(status).toBe(422);
      expect(json.detail[0].loc).toEqual(["body", "base_model"]);
      expect(json.detail[0].msg).toContain("The files of the base model tiny changed since the server started");
    } finally {
      await other.close();
    }
  });

  it("forks and rolls back", async () => {
    const source = await newModel(server);
    await finishedJob(server, (await server.call("POST", "/v1/preview/training-jobs", jobBody(source.id))).json.id);
    const fork = await server.call("POST", "/v1/preview/models", {
      ...{ project: "p", name: `fork-of-${source.name}`, from: { model_id: source.id, step: 1 } },
    });
    expect(fork.json.base_model).toBe("tiny");
    expect((await server.call("GET", `/v1/preview/models/${fork.json.id}/checkpoints/latest`)).json.step).toBe(1);
    const rolled = await server.call("POST", `/v1/preview/models/${source.id}/rollback`, { step: 0 });
    expect(rolled.json).toMatchObject({ step: 2 });
    expect((await server.call("POST", `/v1/preview/models/${source.id}/rollback`, {})).status).toBe(422);
    expect((await server.call("POST", `/v1/preview/models/${source.id}/rollback`, { step: 50 })).status).toBe(404);
  });
});
