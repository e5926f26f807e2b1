// One stream of what happens to the models and jobs of a workspace.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { serverSentEvents } from "../../../src/client/server-sent-events.ts";
import { shared } from "../../support/shared-server.ts";
import { STORES, storesOf } from "../../support/stores.ts";
import { fakeTrainer, trainingBench } from "../../support/training-service.ts";
import { finishedJob, goodGroup, jobBody, newModel } from "./training-requests.ts";
import { startTrainingServer, type TrainingServer } from "./training-server.ts";

interface Item {
  event: string;
  id: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  data: any;
}

/** Reads the stream in the background. */
async function follow(server: TrainingServer, as = "ann", lastId?: string) {
  const cut = new AbortController();
  const headers = { authorization: `Bearer ${as}`, ...(lastId === undefined ? {} : { "last-event-id": lastId }) };
  const response = await fetch(`${server.url}/v1/preview/events`, { headers, signal: cut.signal });
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const items: Item[] = [];
  const done = (async () => {
    for await (const { event, id, data } of serverSentEvents(response.body!)) {
      items.push({ event, id, data: JSON.parse(data) });
    }
  })().catch(() => {});
  const of = (event: string) => items.filter((item) => item.event === event).map(({ data }) => data);
  await expect.poll(() => of("ready")).toHaveLength(1);
  const close = async () => {
    cut.abort();
    await done;
    return items.findLast(({ id }) => id !== null)!.id!;
  };
  return { items, of, close };
}

const server = shared(() => startTrainingServer({ trainer: fakeTrainer(20) }));
const submit = async (id: string) =>
  (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, [goodGroup(), goodGroup()]))).json.id as string;

describe("the stream of news", () => {
  it("tells of models, jobs, their events and steps, and of deletions", async () => {
    const stream = await follow(server);
    const { id } = await newModel(server);
    const job = await submit(id);
    await expect.poll(() => stream.of("job").some(({ status }) => status === "COMPLETED")).toBe(true);
    await expect.poll(() => stream.of("job_event").at(-1)?.event.type).toBe("training_ended");
    const types = stream.of("job_event").map(({ event }) => event.type);
    expect(types).toEqual(["training_started", ...new Array(4).fill("gradient_step"), "training_ended"]);
    const listed = (await server.call("GET", `/v1/preview/training-jobs/${job}/events?limit=100`)).json.data;
    expect(stream.of("job_event").map(({ event }) => event)).toEqual(listed);
    expect(stream.of("model")).toEqual([{ id, deleted: false }]);
    expect(stream.of("step")).toMatchObject([
      { model_id: id, step: 0 },
      { model_id: id, step: 1, metrics: { "train/reward": 0.5 } },
    ]);
    const states = stream.of("job");
    expect(states.at(-1)).toMatchObject({
      ...{ id: job, model_id: id, status: "COMPLETED", progress: 1, gradient_steps: { done: 4, total: 4 } },
      updated_at: expect.any(String),
    });
    await server.call("DELETE", `/v1/preview/models/${id}`);
    await expect.poll(() => stream.of("model").at(-1)).toEqual({ id, deleted: true });
    await stream.close();
  });

  it("tells each workspace its own, an admin all, and nothing twice while it lasts", async () => {
    const streams = { ann: await follow(server), amy: await follow(server, "amy"), bob: await follow(server, "bob") };
    const root = await follow(server, "root");
    const { id } = await newModel(server);
    await submit(id);
    for (const stream of [streams.ann, streams.amy, root]) {
      await expect.poll(() => stream.of("job").at(-1)?.status).toBe("COMPLETED");
      await expect.poll(() => stream.of("job_event").at(-1)?.event.type).toBe("training_ended");
      const ids = stream.of("job_event").map(({ event }) => event.id);
      expect(new Set(ids).size).toBe(ids.length);
    }
    expect(streams.amy.items.map(({ data }) => data)).toEqual(streams.ann.items.map(({ data }) => data));
    expect(streams.bob.items.map(({ event }) => event)).toEqual(["ready"]);
    for (const stream of [...Object.values(streams), root]) await stream.close();
    expect((await server.call("GET", "/v1/preview/events", undefined, { as: "guest" })).status).toBe(403);
    expect((await server.call("GET", "/v1/preview/events", undefined, { as: null })).status).toBe(401);
  });

  it("goes on after Last-Event-ID with what was missed, for that workspace", async () => {
    const [ann, bob] = [await follow(server), await follow(server, "bob")];
    const { id } = await newModel(server);
    await expect.poll(() => ann.of("model").length).toBe(1);
    const [last, bobs] = [await ann.close(), await bob.close()];
    const job = await submit(id);
    await finishedJob(server, job);
    const gone = await newModel(server);
    await server.call("DELETE", `/v1/preview/models/${gone.id}`);
    const again = await follow(server, "ann", last);
    expect(again.of("ready")).toEqual([{ complete: true }]);
    expect(
      again
        .of("job_event")
        .map(({ event }) => event.type)
        .at(-1),
    ).toBe("training_ended");
    expect(again.of("job").find((one) => one.id === job)).toMatchObject({ status: "COMPLETED" });
    expect(again.of("step").some(({ model_id, step }) => model_id === id && step === 1)).toBe(true);
    expect(again.of("model")).toContainEqual({ id: gone.id, deleted: true });
    const other = await follow(server, "bob", bobs);
    expect(other.items.map(({ event }) => event)).toEqual(["ready"]);
    for (const old of ["1-1", "nonsense"]) {
      const lost = await follow(server, "ann", old);
      expect(lost.items.map(({ data }) => data)).toEqual([{ complete: false }]);
      await lost.close();
    }
    await again.close();
    await other.close();
  });
});

describe.each(STORES)("with two servers on %s", (kind) => {
  const open = storesOf(kind);

  it("tells on one what happens on the other", async () => {
    const folder = mkdtempSync(join(tmpdir(), "news-"));
    const store = await open(folder);
    const times = { lease: 3_600_000, renew: 100, sweep: 50, poll: 50 };
    const part = (id: string, runsJobs: boolean) => ({ id, runsJobs, alone: false });
    const worker = await trainingBench({ folder, store, times, server: part("w", true), trainer: fakeTrainer(5) });
    const api = await startTrainingServer({ folder, store, times, server: part("a", false) });
    const stream = await follow(api);
    const { json } = await api.call("POST", "/v1/preview/models", { project: "p", name: "m", base_model: "tiny" });
    await api.call("POST", "/v1/preview/training-jobs", jobBody(json.id, [goodGroup()]));
    await expect.poll(() => stream.of("job").at(-1)?.status).toBe("COMPLETED");
    const types = ["training_started", "gradient_step", "gradient_step", "training_ended"];
    await expect.poll(() => stream.of("job_event").map(({ event }) => event.type)).toEqual(types);
    await worker.service.models.delete(json.id, "1");
    await expect.poll(() => stream.of("model").at(-1)).toEqual({ id: json.id, deleted: true });
    await stream.close();
    await api.close();
    await worker.close();
    await store.close();
  });
});
