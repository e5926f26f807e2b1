// What several requests at once may do to each other. The database answers late and out of step, as a server would, so
// that other work runs between any two statements that do not share a transaction.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lateStore } from "../../test/support/late-store.ts";
import {
  type BenchOptions,
  benchesOfTest,
  ended,
  fakeTrainer,
  heldTrainer,
  jobFolders,
  newModel,
  stepFolder,
  submit,
  type TrainingBench,
  trainingBy,
} from "../../test/support/training-service.ts";
import type { JobRecord } from "../store/tables/jobs.ts";
import { TrainingError } from "./training-error.ts";

const start = benchesOfTest();

/** A bench whose database takes 0 to 3 turns of the event loop around every call, other ones for every seed. */
function late(seed: number, options: BenchOptions = {}): Promise<TrainingBench> {
  let state = seed;
  const turns = () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return (state >> 16) % 4;
  };
  const pause = async () => {
    for (let left = turns(); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
  };
  return start({ ...options, wrapStore: (store) => lateStore(store, pause) });
}

/** A bench whose database keeps back the first answer that `hold` wants, until `release` is called. */
async function holding(hold: (answer: unknown) => boolean, options: BenchOptions = {}) {
  let release = () => {};
  let held = false;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const pause = async (answer: unknown) => {
    if (held || !hold(answer)) return;
    held = true;
    await released;
  };
  const bench = await start({ ...options, wrapStore: (store) => lateStore(store, pause) });
  return { bench, release, isHeld: () => held };
}

const SEEDS = [1, 2];

const modelFolders = (bench: TrainingBench) => readdirSync(join(bench.folder, "training", "models"));
const codes = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((result) => {
    if (result.status === "fulfilled") return "ok";
    if (result.reason instanceof TrainingError) return result.reason.code;
    throw result.reason;
  });

describe.each(SEEDS)("at once, with answers in order %i", (seed) => {
  it("requests with one idempotency key make one job", async () => {
    const bench = await late(seed, { trainer: fakeTrainer(20) });
    const { id } = await newModel(bench);
    const jobs = await Promise.all([1, 2, 3].map(() => submit(bench, id, undefined, { key: "k" })));
    expect(new Set(jobs.map((job) => job.id)).size).toBe(1);
    expect(await bench.service.jobs.list("me", id, null, null, 10)).toHaveLength(1);
    expect((await ended(bench, jobs[0]!)).at(-1)!.type).toBe("training_ended");
    await expect.poll(() => jobFolders(bench)).toEqual([]);
  });

  it("no more jobs are accepted than an owner may have", async () => {
    const bench = await late(seed, { trainer: heldTrainer().trainer, maxOpenJobs: 2 });
    const { id } = await newModel(bench);
    const results = await Promise.allSettled([1, 2, 3, 4].map(() => submit(bench, id)));
    expect(codes(results).sort()).toEqual(["ok", "ok", "too_many_open_jobs", "too_many_open_jobs"]);
  });

  it("no more jobs run than allowed, and those of a model follow one another", async () => {
    const running = new Set<string>();
    let most = 0;
    const trainer = fakeTrainer(5);
    const bench = await late(seed, {
      maxParallelJobs: 2,
      trainer: trainingBy(trainer, async (task, onStep, signal) => {
        expect(running).not.toContain(task.adapter);
        running.add(task.adapter);
        most = Math.max(most, running.size);
        try {
          // the first waits for the second: it might be over before a slow database lets the second begin
          await expect.poll(() => most).toBe(2);
          return await trainer.train(task, onStep, signal);
        } finally {
          running.delete(task.adapter);
        }
      }),
    });
    const models = await Promise.all(["a", "b", "c"].map((name) => newModel(bench, name)));
    const jobs = await Promise.all([...models, ...models].map(({ id }) => submit(bench, id)));
    for (const job of jobs) expect((await ended(bench, job)).at(-1)!.type).toBe("training_ended");
    for (const { id } of models) {
      expect((await bench.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0, 1, 2]);
    }
    expect(most).toBe(2);
  });

  it("a job that is cancelled while it starts ends once, as cancelled", async () => {
    const bench = await late(seed, { trainer: heldTrainer().trainer });
    const { id } = await newModel(bench);
    const jobs = await Promise.all([submit(bench, id), submit(bench, id)]);
    const twice = jobs.flatMap((job) => [job, job]);
    await Promise.all(twice.map((job) => bench.service.jobs.cancel(job.id, "me")));
    for (const job of jobs) {
      const ends = (await ended(bench, job)).filter(
        ({ type }) => type !== "training_started" && type !== "gradient_step",
      );
      expect(ends.map(({ type }) => type)).toEqual(["training_failed"]);
      expect(await bench.service.jobs.owned(job.id, "me")).toMatchObject({
        status: "CANCELLED",
        cancelRequested: true,
      });
    }
    await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
    expect(jobFolders(bench)).toEqual([]);
  });

  it("a model that is deleted while jobs arrive leaves nothing behind", async () => {
    const bench = await late(seed, { trainer: fakeTrainer(5) });
    const { id } = await newModel(bench);
    const submitting = [1, 2, 3].map(() => submit(bench, id));
    const deleting = bench.service.models.delete(id, "me");
    for (const code of codes(await Promise.allSettled(submitting))) expect(["ok", "unknown_model"]).toContain(code);
    expect((await deleting).deletedCheckpoints).toBeGreaterThan(0);
    expect(await bench.service.jobs.list("me", null, null, null, 10)).toEqual([]);
    await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
    expect(jobFolders(bench)).toEqual([]);
    await expect.poll(() => modelFolders(bench)).toEqual([]);
  });

  it("a rollback and the end of its model leave no files, whoever is first", async () => {
    const bench = await late(seed);
    const { id } = await newModel(bench);
    await ended(bench, await submit(bench, id));
    const results = await Promise.allSettled([
      bench.service.models.rollback(id, "me", 0),
      bench.service.models.delete(id, "me"),
    ]);
    const [rollback, deletion] = codes(results);
    expect(["ok", "unknown_model", "unknown_step"]).toContain(rollback);
    expect(deletion).toBe("ok");
    await expect.poll(() => modelFolders(bench)).toEqual([]);
  });

  it("a rollback and a job never train from a step that is not the newest", async () => {
    const bench = await late(seed);
    const { id } = await newModel(bench);
    await ended(bench, await submit(bench, id));
    const [job, rollback] = await Promise.allSettled([submit(bench, id), bench.service.models.rollback(id, "me", 0)]);
    expect(["ok", "model_busy"]).toContain(codes([rollback!])[0]);
    if (job!.status === "rejected") throw job!.reason;
    await ended(bench, job!.value);
    const { fromStep, toStep } = await bench.service.jobs.owned(job!.value.id, "me");
    expect(toStep).toBe(fromStep! + 1);
  });

  it("one of two models with the same name is made", async () => {
    const bench = await late(seed);
    const results = await Promise.allSettled([newModel(bench), newModel(bench), newModel(bench)]);
    expect(codes(results).sort()).toEqual(["model_exists", "model_exists", "ok"]);
    expect(modelFolders(bench)).toHaveLength(1);
    const again = { owner: "me", entity: "team", project: "demo", baseModel: "tiny", returnExisting: true, from: null };
    const same = await Promise.all([1, 2].map(() => bench.service.models.create({ ...again, name: "other" })));
    expect(same[0]!.id).toBe(same[1]!.id);
    expect(modelFolders(bench)).toHaveLength(2);
  });

  it("requests for a run of one name get one run", async () => {
    const bench = await late(seed);
    const run = {
      owner: "me",
      entity: "team",
      name: "r",
      baseModel: "tiny",
      loraRank: 2,
      seed: null,
      spec: "{}",
      from: null,
    };
    const views = await Promise.all([1, 2, 3].map((n) => bench.service.runs.resolve({ ...run, requestId: `q${n}` })));
    expect(new Set(views.map((view) => view.run.modelId)).size).toBe(1);
    expect(modelFolders(bench)).toHaveLength(1);
  });

  it("a step is served with its files or not at all while it is deleted", async () => {
    const bench = await late(seed);
    const { id } = await newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, id));
    const [lease, deleted] = await Promise.all([
      bench.service.policies.acquire("agent@1", "me"),
      bench.service.models.deleteSteps(id, "me", [1]),
    ]);
    expect(existsSync(stepFolder(bench, id, 1))).toBe(lease !== null);
    expect(deleted.keptSteps).toEqual(lease === null ? [] : [1]);
    lease?.release();
  });
});

describe("in the moment between", () => {
  it("the claim of a job and its start, it can be cancelled", async () => {
    const claimed = (answer: unknown) => (answer as (JobRecord & { epoch?: number })[] | undefined)?.[0]?.epoch === 1;
    const { bench, release, isHeld } = await holding(claimed, { trainer: fakeTrainer(20) });
    const { id } = await newModel(bench);
    const submitting = submit(bench, id);
    await expect.poll(isHeld).toBe(true);
    const [job] = await bench.service.jobs.list("me", id, "RUNNING", null, 10);
    const cancelling = bench.service.jobs.cancel(job!.id, "me");
    await expect.poll(async () => (await bench.service.jobs.owned(job!.id, "me")).cancelRequested).toBe(true);
    release();
    await Promise.all([submitting, cancelling]);
    expect((await ended(bench, job!)).map(({ type }) => type)).toEqual(["training_failed"]);
    expect(await bench.service.jobs.owned(job!.id, "me")).toMatchObject({ status: "CANCELLED", toStep: null });
  });

  it.each(["step", "model"])("the look for a step and its lease, the %s may go", async (what) => {
    let looking = false;
    const isPolicy = (answer: unknown) => looking && (answer as { found?: number }[] | undefined)?.[0]?.found === 1;
    const { bench, release, isHeld } = await holding(isPolicy);
    const { models, policies } = bench.service;
    const { id } = await newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, id));
    looking = true;
    const acquiring = policies.acquire("agent@1", "me");
    await expect.poll(isHeld).toBe(true);
    if (what === "step") expect(await models.deleteSteps(id, "me", [1])).toMatchObject({ deletedCount: 1 });
    else expect(await models.delete(id, "me")).toEqual({ deletedCheckpoints: 3 });
    release();
    expect(await acquiring).toBeNull();
    expect(policies.inUse(id, 1)).toBe(false);
  });

  it("the look for the files of a step and their copy, the model may go", async () => {
    const isFolder = (answer: unknown) => Object.keys(answer ?? {}).join() === "folder";
    const { bench, release, isHeld } = await holding(isFolder);
    const { id } = await newModel(bench);
    const rollback = expect(bench.service.models.rollback(id, "me", 0)).rejects.toMatchObject({
      code: "unknown_model",
    });
    await expect.poll(isHeld).toBe(true);
    await bench.service.models.delete(id, "me");
    release();
    await rollback;
  });
});
