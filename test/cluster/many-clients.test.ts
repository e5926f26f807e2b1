// 32 clients of four servers at once, whose transactions get in each other's way: PostgreSQL ends some of them, and they run
// again. What clients asked for is done once, and no limit is exceeded.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openPostgres } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import type { JobRecord } from "../../src/store/tables/jobs.ts";
import { usePostgres } from "../postgres/use-postgres.ts";
import { ended, newModel, submit, type TrainingBench, trainingBench } from "../support/training-service.ts";
import { violations } from "../training-invariants/violations.ts";

const postgres = usePostgres();
const CLIENTS = 32;
const LIMIT = 10;

let folder: string;
let url: string;
let stores: Store[];
let benches: TrainingBench[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "cluster-"));
  url = await postgres().createDatabase();
  stores = [];
  benches = [];
  for (const id of ["a", "b", "c", "d"]) await start(id, false);
});
afterEach(async () => {
  for (const bench of benches) await bench.close();
  for (const store of stores) await store.close();
});

async function start(id: string, runsJobs: boolean): Promise<TrainingBench> {
  const store = await openPostgres(url);
  const server = { id, runsJobs, alone: false };
  const bench = await trainingBench({ folder, store, server, maxOpenJobs: LIMIT });
  stores.push(store);
  benches.push(bench);
  return bench;
}

/** What each client gets from its server, all at once. */
function all<R>(work: (bench: TrainingBench, client: number) => Promise<R>): Promise<PromiseSettledResult<R>[]> {
  return Promise.allSettled(Array.from({ length: CLIENTS }, (_, i) => work(benches[i % 4]!, i)));
}

/** Runs the jobs to their ends and checks everything. */
async function finish(jobs: readonly JobRecord[]): Promise<void> {
  const worker = await start("worker", true);
  for (const job of jobs) expect((await ended(worker, job)).at(-1)!.type).toBe("training_ended");
  for (const bench of benches.splice(0)) await bench.close();
  const accepted = jobs.map(({ id }) => id);
  expect(await violations({ store: stores[0]!, folder: join(folder, "training"), accepted })).toEqual([]);
}

it("accept as many jobs of an owner as the quota allows, and not one more", async () => {
  const models = await Promise.all(["x", "y", "z"].map((name) => newModel(benches[0]!, name)));
  const results = await all((bench, i) => submit(bench, models[i % 3]!.id));
  const jobs = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  expect(jobs).toHaveLength(LIMIT);
  for (const result of results) {
    if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "too_many_open_jobs" });
  }
  await finish(jobs);
});

it("make one job of requests with the same key, and one model of those with the same name", async () => {
  const names = { owner: "me", entity: "team", project: "demo", name: "agent", baseModel: "tiny" };
  const made = await all((bench) => bench.service.models.create({ ...names, returnExisting: true, from: null }));
  const [model] = made.map((result) => (result.status === "fulfilled" ? result.value.id : String(result.reason)));
  const ids = made.map((result) => (result.status === "fulfilled" ? result.value.id : String(result.reason)));
  expect(ids).toEqual(ids.map(() => model));
  const results = await all((bench) => submit(bench, model!, undefined, { key: "once" }));
  const jobs = results.map((result) => (result.status === "fulfilled" ? result.value : null));
  expect(jobs.map((job) => job?.id)).toEqual(jobs.map(() => jobs[0]!.id));
  await finish([jobs[0]!]);
});
