// What belongs to another workspace must look as if it did not exist, wherever a job or model can be named or listed. Only
// admins see it, and every key of --api-key is one.

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ServerTable } from "../../src/store/tables/servers.ts";
import { shared } from "../support/shared-server.ts";
import { startTestServer } from "../support/test-server.ts";
import { heldTrainer } from "../support/training-service.ts";
import { goodGroup, jobBody, newModel } from "../wire/training/training-requests.ts";
import { type CallOptions, startTrainingServer } from "../wire/training/training-server.ts";

const { trainer, hold, letGo } = heldTrainer();
const server = shared(async () => {
  hold();
  const part = { id: "here", runsJobs: true, alone: true };
  const started = await startTrainingServer({ trainer, server: part });
  const facts = { models: ["tiny"], replicas: [] };
  await new ServerTable(started.bench.store).beat({ id: "here", role: "all", address: "x", version: "1", facts });
  const close = async () => {
    letGo();
    await started.close();
  };
  return { ...started, close };
});

/** A running job of Ann. */
async function annsJob() {
  const model = await newModel(server);
  const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(model.id, [goodGroup()]));
  await expect
    .poll(async () => (await server.call("GET", `/v1/preview/training-jobs/${json.id}`)).json.status)
    .toBe("RUNNING");
  return { model, job: json.id as string };
}

describe("a job of another workspace", () => {
  it("cannot be used again, not even for a dry run, and answers like one that does not exist", async () => {
    const { model, job } = await annsJob();
    const own = (
      await server.call("POST", "/v1/preview/models", { project: "p", name: "b", base_model: "tiny" }, { as: "bob" })
    ).json;
    const submit = (body: object, as: CallOptions["as"] = "bob") =>
      server.call("POST", "/v1/preview/training-jobs", body, { as });
    for (const dry_run of [true, false]) {
      const foreign = await submit({ model_id: own.id, from_job: job, dry_run });
      const unknown = await submit({ model_id: own.id, from_job: randomUUID(), dry_run });
      expect(foreign.status).toBe(404);
      expect(JSON.stringify(foreign.json).replaceAll(job, "ID")).toBe(
        JSON.stringify(unknown.json).replaceAll(/[\da-f-]{36}/g, "ID"),
      );
      const without = await submit({ from_job: job, dry_run });
      expect(without.status).toBe(404);
      const foreignModel = await submit({ ...jobBody(model.id, [goodGroup()]), dry_run });
      const unknownModel = await submit({ ...jobBody(randomUUID(), [goodGroup()]), dry_run });
      expect([foreignModel.status, unknownModel.status]).toEqual([404, 404]);
      expect(JSON.stringify(foreignModel.json).replaceAll(model.id, "ID")).toBe(
        JSON.stringify(unknownModel.json).replaceAll(/[\da-f-]{36}/g, "ID"),
      );
    }
    expect((await submit({ model_id: model.id, from_job: job, dry_run: true }, "amy")).status).toBe(200);
  });

  it("is not in the list of servers, except for admins", async () => {
    const { model, job } = await annsJob();
    const seen = async (as: CallOptions["as"]) =>
      (await server.call("GET", "/v1/preview/servers", undefined, { as })).json.data[0].running_jobs.map(
        ({ id }: { id: string }) => id,
      );
    expect(await seen("amy")).toContain(job);
    expect(await seen("root")).toContain(job);
    expect(await seen("bob")).toEqual([]);
    const text = JSON.stringify((await server.call("GET", "/v1/preview/servers", undefined, { as: "bob" })).json);
    expect(text).not.toContain(model.id);
  });
});

it("every key of --api-key is an admin in a workspace of its own", async () => {
  const started = await startTestServer({ config: { apiKey: ["one", "two"] } });
  for (const [i, key] of ["one", "two"].entries()) {
    const me = await (await started.get("/v1/me", { authorization: `Bearer ${key}` })).json();
    expect(me.scopes).toContain("admin");
    expect(me.workspace.name).toBe(`api-key-${i + 1}`);
  }
  await started.close();
});
