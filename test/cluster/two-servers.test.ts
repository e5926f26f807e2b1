// Two servers on one store and one folder of training files: one runs a job, and things happen to it.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { JobEvent } from "../../src/store/tables/events.ts";
import type { JobRecord } from "../../src/store/tables/jobs.ts";
import type { LeaseTimes } from "../../src/training/context.ts";
import type { StepMetrics } from "../../src/training/contract.ts";
import { type PausedStore, pausableStore } from "../support/paused-store.ts";
import { STORES, storesOf } from "../support/stores.ts";
import {
  type BenchOptions,
  ended,
  fakeTrainer,
  heldTrainer,
  newModel,
  scored,
  submit,
  type TrainingBench,
  trainingBench,
  trainingBy,
} from "../support/training-service.ts";
import { violations } from "../training-invariants/violations.ts";

/** A lease expires when a test says so, and not because the machine was busy. */
const TIMES: LeaseTimes = { lease: 3_600_000, renew: 100, sweep: 50, poll: 50 };

/** Eight gradient steps. */
const GROUPS = Array.from({ length: 4 }, () => scored(["a1 <e>", 1], ["a2 <e>", 0]));

describe.each(STORES)("two servers on %s", (kind) => {
  const openIn = storesOf(kind);
  let folder: string;
  let open: () => Promise<Store>;
  let stores: Set<Store>;
  let benches: TrainingBench[];
  let paused: PausedStore[];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "cluster-"));
    // a file has one server: there, all get the same connection
    const file = kind === "SQLite" ? await openIn(folder) : null;
    open = async () => file ?? (await openIn(folder));
    stores = new Set();
    benches = [];
    paused = [];
  });
  afterEach(async () => {
    for (const one of paused) one.resume();
    for (const bench of benches) await bench.close();
    const [store] = stores;
    expect(await violations({ store: store!, folder: join(folder, "training") })).toEqual([]);
    for (const one of stores) await one.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(id: string, options: BenchOptions & { runsJobs?: boolean } = {}): Promise<TrainingBench> {
    const store = await open();
    stores.add(store);
    const server = { id, runsJobs: options.runsJobs ?? true, alone: false };
    const bench = await trainingBench({ folder, store, times: TIMES, server, ...options });
    benches.push(bench);
    return bench;
  }
  const pausable = async () => {
    const inner = await open();
    stores.add(inner);
    const store = pausableStore(inner);
    paused.push(store);
    return store;
  };
  const api = () => start("api", { runsJobs: false });
  const worker = (id: string, options: BenchOptions = {}) => start(id, options);
  /** Ends the lease of its first server. Again and again: a renewal may still be on its way. */
  const expire = async ({ id }: JobRecord) => {
    const [store] = stores;
    const held = "id = ?1 AND status = 'RUNNING' AND epoch = 1";
    await expect
      .poll(async () => {
        await store!.run(`UPDATE jobs SET lease_until = 1 WHERE ${held}`, id);
        return store!.get(`SELECT id FROM jobs WHERE ${held}`, id);
      })
      .toBeFalsy();
  };
  const running = async (bench: TrainingBench, job: JobRecord) => {
    await expect.poll(async () => (await bench.service.jobs.owned(job.id, "me")).progress ?? 0).toBeGreaterThan(0);
  };
  const read = (bench: TrainingBench, job: JobRecord) => bench.service.jobs.owned(job.id, "me");
  /** Folders of steps that are being made. */
  const staging = () => {
    const models = join(folder, "training", "models");
    return readdirSync(models).flatMap((model) =>
      readdirSync(join(models, model))
        .filter((name) => name.startsWith(".staging-"))
        .map((name) => join(models, model, name)),
    );
  };

  it("one takes the job, the other streams its events as they come and serves the step", async () => {
    const seen: string[] = [];
    let live = 0;
    const trainer = fakeTrainer();
    const [a, b] = [
      await api(),
      await worker("b", {
        trainer: trainingBy(trainer, async (task, onStep, signal) => {
          const steps: StepMetrics[] = [];
          const result = await trainer.train(task, (metrics) => steps.push(metrics), signal);
          for (const metrics of steps) {
            const before = live;
            onStep(metrics);
            // the other one hears of it before the next
            await expect.poll(() => live).toBeGreaterThan(before);
          }
          return result;
        }),
      }),
    ];
    const model = await newModel(a);
    const job = await submit(a, model.id, GROUPS);
    let last: string | null = null;
    let stop = () => {};
    let turn = Promise.resolve();
    await new Promise<void>((resolve) => {
      const follow = async () => {
        const events: JobEvent[] = await a.service.jobs.events(job.id, last, 100);
        if (events.length === 0 || events[0]!.id === last) return;
        last = events.at(-1)!.id;
        seen.push(...events.map(({ type }) => type));
        if (seen.at(-1) === "training_ended") resolve();
        else live++;
      };
      stop = a.service.jobs.watch(job.id, () => {
        turn = turn.then(follow);
      });
    });
    stop();
    await turn;
    expect(seen).toEqual(["training_started", ...new Array(8).fill("gradient_step"), "training_ended"]);
    expect(await a.service.policies.find("agent", "me")).toMatchObject({ step: 1 });
    const lease = await a.service.policies.acquire("agent", "me");
    expect(lease!.step).toBe(1);
    lease!.release();
    expect(b.engine.loads).toHaveLength(1);
  });

  it("share a queue: no job runs twice, and those of a model follow one another", async () => {
    const a = await api();
    await worker("b");
    await worker("c");
    const models = await Promise.all(["x", "y", "z"].map((name) => newModel(a, name)));
    const jobs = [];
    for (let i = 0; i < 12; i++) jobs.push(await submit(a, models[i % 3]!.id));
    for (const job of jobs) expect((await ended(a, job)).at(-1)!.type).toBe("training_ended");
    for (const { id } of models) {
      expect((await a.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0, 1, 2, 3, 4]);
    }
  });

  it("the job of a server that is gone starts again elsewhere and tells each event once", async () => {
    const [a, gone] = [await api(), await pausable()];
    const b = await worker("b", { trainer: heldTrainer().trainer, wrapStore: () => gone });
    const job = await submit(a, (await newModel(a)).id, GROUPS);
    await running(a, job);
    gone.pause();
    await expire(job);
    await worker("c");
    const events = await ended(a, job);
    expect(events.map(({ type }) => type)).toEqual([
      "training_started",
      ...new Array(8).fill("gradient_step"),
      "training_ended",
    ]);
    expect(await read(a, job)).toMatchObject({ status: "COMPLETED", attempts: 2, toStep: 1 });
    // it comes back, finds that it lost its lease, and leaves nothing
    gone.resume();
    await expect.poll(async () => (await b.service.stats()).running).toBe(0);
    expect(await a.service.jobs.events(job.id, null, 100)).toEqual(events);
    expect(staging()).toEqual([]);
    expect((await a.service.models.steps(job.modelId, "me")).map(({ step }) => step)).toEqual([0, 1]);
  });

  it("a server that was paused past its lease publishes nothing when it wakes", async () => {
    const [a, asleep] = [await api(), await pausable()];
    const { trainer, letGo } = heldTrainer();
    const b = await worker("b", { trainer, wrapStore: () => asleep });
    const model = await newModel(a);
    const job = await submit(a, model.id, GROUPS);
    await running(a, job);
    asleep.pause();
    // its trainer goes on and its files are ready before it can reach the store again
    letGo();
    await expect.poll(() => staging().flatMap((path) => readdirSync(path))).toContain("optimizer.safetensors");
    await expire(job);
    await worker("c");
    await ended(a, job);
    const before = await read(a, job);
    asleep.resume();
    await expect.poll(async () => (await b.service.stats()).running).toBe(0);
    expect(await read(a, job)).toEqual(before);
    expect(staging()).toEqual([]);
    const next = await submit(a, model.id);
    await ended(a, next);
    expect(await read(a, next)).toMatchObject({ status: "COMPLETED", fromStep: 1, toStep: 2 });
  });

  it("a job is cancelled from the other server at once", async () => {
    const a = await api();
    await worker("b", { trainer: heldTrainer().trainer });
    const job = await submit(a, (await newModel(a)).id, GROUPS);
    await running(a, job);
    await a.service.jobs.cancel(job.id, "me");
    expect((await ended(a, job)).at(-1)).toMatchObject({
      type: "training_failed",
      data: { error_message: "cancelled" },
    });
    expect(await read(a, job)).toMatchObject({ status: "CANCELLED" });
  });

  it("a cancellation that nobody heard is seen when the lease is renewed, or when it expires", async () => {
    const [a, gone] = [await api(), await pausable()];
    const deaf = { ...gone, listen: () => () => {} };
    await worker("b", { trainer: heldTrainer().trainer, wrapStore: () => deaf });
    const model = await newModel(a);
    const heardLate = await submit(a, model.id, GROUPS);
    await running(a, heardLate);
    await a.service.jobs.cancel(heardLate.id, "me");
    await ended(a, heardLate);
    expect(await read(a, heardLate)).toMatchObject({ status: "CANCELLED", attempts: 1 });

    const never = await submit(a, model.id, GROUPS);
    await running(a, never);
    gone.pause();
    await a.service.jobs.cancel(never.id, "me");
    await expire(never);
    await ended(a, never);
    expect(await read(a, never)).toMatchObject({ status: "CANCELLED", attempts: 1 });
    gone.resume();
  });

  it("a job that loses its server five times fails", async () => {
    const a = await api();
    const b = await worker("b", { trainer: heldTrainer().trainer });
    const job = await submit(a, (await newModel(a)).id, GROUPS);
    await running(a, job);
    const [store] = stores;
    await store!.run("UPDATE jobs SET attempts = 5, epoch = 7, lease_until = 1 WHERE id = ?1", job.id);
    const events = await ended(a, job);
    expect(events.at(-1)!.data).toEqual({ error_message: "the server stopped 5 times while this job was running" });
    expect(await read(a, job)).toMatchObject({ status: "FAILED" });
    await expect.poll(async () => (await b.service.stats()).running).toBe(0);
  });

  it("a model is deleted while its job runs on the other server", async () => {
    const a = await api();
    const b = await worker("b", { trainer: heldTrainer().trainer });
    const model = await newModel(a);
    const job = await submit(a, model.id, GROUPS);
    await running(a, job);
    expect(await a.service.models.delete(model.id, "me")).toEqual({ deletedCheckpoints: 1 });
    await expect(read(a, job)).rejects.toThrow("There is no training job");
    await expect.poll(async () => (await b.service.stats()).running).toBe(0);
    expect(readdirSync(join(folder, "training", "models"))).toEqual([]);
  });

  it("the deletion of a model whose job does not stop ends with a reason", async () => {
    const a = await start("api", { runsJobs: false, times: { ...TIMES, lease: 600 } });
    const model = await newModel(a);
    const job = await submit(a, model.id, GROUPS);
    const [store] = stores;
    // held by a server that renews its lease but never stops
    await store!.run("UPDATE jobs SET status = 'RUNNING', epoch = 1, lease_until = 9e15 WHERE id = ?1", job.id);
    await expect(a.service.models.delete(model.id, "me")).rejects.toThrow(/runs on another server/);
    await expire(job);
    await ended(a, job);
  });

  it("a server that stops gives its job to the other one without counting the attempt", async () => {
    const a = await api();
    const b = await worker("b", { trainer: heldTrainer().trainer });
    const job = await submit(a, (await newModel(a)).id, GROUPS);
    await running(a, job);
    await worker("c");
    await b.service.close();
    await ended(a, job);
    expect(await read(a, job)).toMatchObject({ status: "COMPLETED", attempts: 1 });
  });
});
