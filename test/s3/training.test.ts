// Servers that share only a database and a bucket: each has a local folder of its own.

import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLog } from "../../src/observe/log.ts";
import type { Store } from "../../src/store/store.ts";
import { tablesOn } from "../../src/store/tables/tables.ts";
import { openBucket } from "../../src/training/files/s3/open-bucket.ts";
import { SharedBucket } from "../../src/training/files/s3/shared-bucket.ts";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { PROJECT_STORE, storesOf } from "../support/stores.ts";
import {
  type BenchOptions,
  ended,
  fakeTrainer,
  newModel,
  submit,
  type TrainingBench,
  trainingBench,
} from "../support/training-service.ts";
import { useS3 } from "./use-s3.ts";
import { wrongObjects } from "./wrong-objects.ts";

const HOUR_MS = 3_600_000;
const PREFIX = "fleet/";
const TIMES = { lease: 3_600_000, renew: 200, sweep: 100, poll: 50 };
const s3 = useS3();
const openStore = storesOf(PROJECT_STORE);
const log = createLog({ level: "error", format: "text" });

interface Member extends TrainingBench {
  /** Its local folder. */
  local: string;
  workspace: StepFolders;
}

let store: Store;
let members: Member[];
beforeEach(async () => {
  store = await openStore(mkdtempSync(join(tmpdir(), "s3-store-")));
  members = [];
});
afterEach(async () => {
  s3().release();
  for (const member of members) await member.close();
  expect(await wrongObjects(tablesOn(store), s3(), PREFIX, HOUR_MS)).toEqual([]);
  await store.close();
});

async function start(
  runsJobs: boolean,
  options: BenchOptions & { cacheBytes?: number; patienceMs?: number } = {},
): Promise<Member> {
  const { cacheBytes = 2 ** 30, patienceMs = 20_000, ...rest } = options;
  const local = mkdtempSync(join(tmpdir(), "s3-member-"));
  const bucket = await openBucket({ bucket: s3().bucket, prefix: PREFIX });
  const workspace = new StepFolders(local, new SharedBucket(bucket, { folder: local, cacheBytes, log, patienceMs }));
  const server = { id: `server-${members.length}`, runsJobs, alone: false };
  const bench = await trainingBench({ folder: local, store, workspace, server, times: TIMES, ...rest });
  members.push({ ...bench, local, workspace });
  return members.at(-1)!;
}
const cached = ({ local }: Member, model: string) =>
  readdirSync(join(local, "models", model)).filter((name) => name.startsWith("step-"));
const weights = async (member: Member, model: string, step: number) => {
  const { folder, release } = await member.service.models.openStep(model, "me", step);
  const bytes = readFileSync(join(folder, "adapter_model.safetensors"));
  release();
  return bytes.toString("base64");
};
const removedEarlier = (ms: number) => store.run("UPDATE removed_steps SET removed_at = removed_at - ?1", ms);
const stepsIn = (model: string) =>
  new Set(
    s3()
      .keys(`${PREFIX}models/${model}/`)
      .map((key) => key.split("/")[3]),
  );

it("a step that a worker trained is served, forked, rolled back to and downloaded elsewhere", async () => {
  const [api, worker, other] = [await start(false), await start(true), await start(false)];
  const { id } = await newModel(api);
  const job = await submit(api, id);
  expect((await ended(api, job)).at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
  await expect.poll(() => s3().keys(`${PREFIX}jobs/`)).toEqual([]);

  const lease = (await api.service.policies.acquire("agent", "me"))!;
  expect(lease).toMatchObject({ step: 1, adapter: expect.any(String) });
  expect([...worker.engine.versions]).toContain(lease.adapter);
  // serving needs no optimizer state
  expect(readdirSync(api.engine.loads.at(-1)!).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  lease.release();

  const trained = await weights(other, id, 1);
  const names = { owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null, returnExisting: false };
  const fork = await other.service.models.create({ ...names, from: { modelId: id, step: 1, owner: "me" } });
  expect(await weights(api, fork.id, 1)).toBe(trained);
  expect((await ended(api, await submit(api, fork.id))).at(-1)).toMatchObject({ data: { step: 2 } });
  const rolled = await other.service.models.rollback(id, "me", 0);
  expect(rolled.step).toBe(2);
  expect(await weights(worker, id, 2)).toBe(await weights(api, id, 0));
  expect(await weights(worker, id, 2)).not.toBe(trained);
  expect((await ended(api, await submit(api, id))).at(-1)).toMatchObject({ data: { step: 3 } });
  await expect.poll(() => readdirSync(join(worker.local, "jobs"))).toEqual([]);
});

it("a server that lost its disk goes on from the bucket", async () => {
  const first = await start(true);
  const { id } = await newModel(first);
  await ended(first, await submit(first, id));
  const trained = await weights(first, id, 1);
  await members.shift()!.close();
  // alone on its database, it also clears away at its start what belongs to nothing
  s3().objects.set(`${PREFIX}jobs/over/submission.jsonl`, {
    body: Buffer.from("x"),
    modified: Date.now(),
    metadata: {},
  });
  const second = await start(true, { server: { id: "again", runsJobs: true, alone: true } });
  expect(s3().keys(`${PREFIX}jobs/`)).toEqual([]);
  expect(await weights(second, id, 1)).toBe(trained);
  expect((await ended(second, await submit(second, id))).at(-1)).toMatchObject({ data: { step: 2 } });
});

it("objects of a deleted step stay for the grace time, then any server removes them; copies go too", async () => {
  const [api, worker, other] = [
    await start(false, { stepGraceMs: HOUR_MS }),
    await start(true, { stepGraceMs: HOUR_MS }),
    await start(false, { stepGraceMs: HOUR_MS }),
  ];
  const { id } = await newModel(api);
  for (let i = 0; i < 2; i++) await ended(api, await submit(api, id));
  const lease = (await other.service.policies.acquire("agent@1", "me"))!;
  expect(await api.service.models.deleteSteps(id, "me", [1])).toMatchObject({ deletedCount: 1 });
  expect(await other.service.policies.acquire("agent@1", "me")).toBeNull();
  expect(stepsIn(id).size).toBe(3);
  await removedEarlier(HOUR_MS + 1000);
  // a sweep of a server that does not use the step
  await api.service.models.deleteSteps(id, "me", [0]);
  expect(stepsIn(id).size).toBe(2);
  // the other one still has what its request uses, and what it gives back later
  expect(existsSync(other.engine.loads.at(-1)!)).toBe(true);
  lease.release();

  await api.service.models.delete(id, "me");
  await removedEarlier(HOUR_MS + 1000);
  const last = await newModel(worker, "last");
  await worker.service.models.delete(last.id, "me");
  expect(s3().keys(`${PREFIX}models/${id}/`)).toEqual([]);
});

it("a server with a small cache serves many steps, and never drops one that a request uses", async () => {
  const worker = await start(true);
  const { id } = await newModel(worker);
  for (let i = 0; i < 5; i++) await ended(worker, await submit(worker, id));
  const { bytes } = await worker.service.models.step(id, "me", 5);
  const api = await start(false, { cacheBytes: Math.floor(1.2 * bytes), maxLoras: 1 });
  const lease = (await api.service.policies.acquire("agent@1", "me"))!;
  const held = await api.service.models.openStep(id, "me", 2);
  for (const step of [3, 4, 5, 3]) (await api.service.models.openStep(id, "me", step)).release();
  const here = cached(api, id).map((name) => Number(name.split("-")[1]));
  expect(here).toContain(1);
  expect(here).toContain(2);
  expect(here.length).toBeLessThanOrEqual(3);
  expect(readdirSync(held.folder)).toContain("adapter_model.safetensors");
  held.release();
  lease.release();
});

it("a job whose bucket is unreachable waits for it, before it trains and before it publishes", async () => {
  const [api, worker] = [await start(false), await start(true, { trainer: fakeTrainer(20) })];
  const { id } = await newModel(api);
  s3().fail({ kind: "hang up", method: "PUT", match: /step-1-/ });
  s3().fail({ kind: "hang up", method: "GET", match: /submission/, times: 6 });
  const job = await submit(api, id);
  await expect.poll(() => s3().requests.filter(({ key }) => /step-1-/.test(key)).length).toBeGreaterThan(4);
  expect((await api.service.jobs.owned(job.id, "me")).status).toBe("RUNNING");
  s3().release();
  expect((await ended(api, job)).at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
  expect(worker.engine.loads.length).toBeGreaterThan(0);
});

it("a job that the bucket refuses or never answers fails, says so, and publishes nothing", async () => {
  const [api] = [await start(false), await start(true, { patienceMs: 1500 })];
  const { id } = await newModel(api);
  for (const [kind, message] of [
    ["access denied", "the storage of the server refuses access"],
    ["hang up", "the storage of the server cannot be reached"],
  ] as const) {
    s3().fail({ kind, method: "PUT", match: /step-1-.*optimizer/ });
    const job = await submit(api, id);
    expect((await ended(api, job)).at(-1)).toMatchObject({ type: "training_failed", data: { error_message: message } });
    s3().release();
  }
  expect((await api.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0]);
  s3().age(2 * HOUR_MS);
  const { workspace } = members[0]!;
  const folders = new Set((await api.service.models.steps(id, "me")).map(({ folder }) => folder));
  const rows = { models: new Map([[id, { folders, nextStep: 1, interrupted: false }]]), gradients: new Set<string>() };
  await workspace.clearLeftovers({ ...rows, jobs: new Set(), running: new Set(), removed: new Set() }, HOUR_MS);
  expect(stepsIn(id)).toEqual(folders);
});

it("a submission that cannot be stored is refused, and leaves nothing", async () => {
  const api = await start(false);
  const { id } = await newModel(api);
  s3().fail({ kind: "hang up", match: /jobs/ });
  await expect(submit(api, id)).rejects.toMatchObject({ name: "StorageUnavailable", passing: true });
  s3().release();
  expect(await api.service.jobs.list("me", id, null, null, 10)).toEqual([]);
  expect(readdirSync(join(api.local, "jobs"))).toEqual([]);
});

it("a damaged step is refused, and nothing of it is loaded", async () => {
  const worker = await start(true);
  const { id } = await newModel(worker);
  await ended(worker, await submit(worker, id));
  const { folder } = await worker.service.models.step(id, "me", 1);
  const object = s3().objects.get(`${PREFIX}models/${id}/${folder}/adapter_model.safetensors`)!;
  const { body } = object;
  object.body = Buffer.from(body);
  object.body[body.length - 1]! ^= 1;
  const api = await start(false);
  await expect(api.service.policies.acquire("agent", "me")).rejects.toMatchObject({ code: "damaged_step" });
  await expect(api.service.models.openStep(id, "me", 1)).rejects.toMatchObject({ code: "damaged_step" });
  expect(api.engine.loads).toEqual([]);
  object.body = body;
  (await api.service.policies.acquire("agent", "me"))!.release();
});
