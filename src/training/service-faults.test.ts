import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import {
  benchesOfTest,
  ended,
  fakeTrainer,
  faulty,
  heldTrainer,
  jobFolders,
  newModel,
  scored,
  stepFolder,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../test/support/training-service.ts";
import { violations } from "../../test/training-invariants/violations.ts";
import { JobTable } from "../store/tables/jobs.ts";
import { ModelTable } from "../store/tables/models.ts";
import { RL_DEFAULTS } from "./config.ts";
import { StepFolders } from "./files/step-folders.ts";
import { JobJournal } from "./jobs/job-journal.ts";
import { StepRetention } from "./steps/step-upkeep.ts";

const start = benchesOfTest();
const wrong = async ({ store, service, folder }: TrainingBench) => {
  // a job ends before its files go
  await expect.poll(() => service.stats()).toEqual({ running: 0, pending: 0 });
  return violations({ store, folder: join(folder, "training") });
};

describe("faults", () => {
  it.each([
    ["crashes", 101, /^the trainer process ended with code 7; the server's log has its last words$/],
    ["reports a failure", 102, /told to fail/],
    ["writes a corrupt adapter", 104, /adapter_model/],
  ])("a trainer that %s fails its job with the reason, and the next job runs", async (_what, id, reason) => {
    const bench = await start();
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = await newModel(bench);
    const job = await submit(bench, model.id, [faulty(id)]);
    const events = await ended(bench, job);
    expect(events.at(-1)!.type).toBe("training_failed");
    expect(await bench.service.jobs.owned(job.id, "me")).toMatchObject({
      status: "FAILED",
      errorMessage: expect.stringMatching(reason),
    });
    expect(readdirSync(join(bench.folder, "training", "models", model.id))).toEqual([
      expect.stringMatching(/^step-0-/),
    ]);
    expect((await ended(bench, await submit(bench, model.id))).at(-1)!.type).toBe("training_ended");
    expect((await bench.service.models.step(model.id, "me", "latest")).step).toBe(1);
  });

  it("kills a trainer that does not react to a cancellation", async () => {
    const bench = await start({ trainer: fakeTrainer(20) });
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = await newModel(bench);
    const group = faulty(103);
    const many = { ...group, trajectories: Array.from({ length: 2000 }, (_, i) => group.trajectories[i % 2]!) };
    const job = await submit(bench, model.id, [many]);
    await new Promise<void>((resolve) => {
      bench.service.jobs.watch(job.id, (event) => event?.type === "gradient_step" && resolve());
    });
    await bench.service.jobs.cancel(job.id, "me");
    expect((await ended(bench, job)).at(-1)!.data).toEqual({ error_message: "cancelled" });
  });

  it("fails a job whose data or starting weights are gone, and runs the next one", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ maxParallelJobs: 1, trainer });
    const model = await newModel(bench);
    const first = await submit(bench, model.id);
    const second = await submit(bench, model.id);
    rmSync(join(bench.folder, "training", "jobs", second.id, "submission.jsonl"));
    letGo();
    await ended(bench, first);
    const missing = (await ended(bench, second)).at(-1)!.data.error_message;
    expect(missing).toBe("the server met an unexpected error, which its log has");

    writeFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"), "rubbish");
    const third = await ended(bench, await submit(bench, model.id));
    expect(third.at(-1)!.type).toBe("training_failed");
    expect(third.at(-1)!.data.error_message).not.toContain(bench.folder);
  });

  it("fails a job that an earlier version stored in another form, and says what to do", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ maxParallelJobs: 1, trainer });
    const model = await newModel(bench);
    const first = await submit(bench, model.id);
    const second = await submit(bench, model.id);
    const folder = join(bench.folder, "training", "jobs", second.id);
    renameSync(join(folder, "submission.jsonl"), join(folder, "input.jsonl"));
    letGo();
    await ended(bench, first);
    expect((await ended(bench, second)).at(-1)!.data.error_message).toMatch(
      /earlier version of this server.*submit it again/,
    );
  });

  it("refuses to copy a step whose files are damaged", async () => {
    const bench = await start();
    const model = await newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const { models } = bench.service;
    writeFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"), "rubbish");
    await expect(models.rollback(model.id, "me", 1)).rejects.toMatchObject({ code: "damaged_step" });
    const fork = { ...{ owner: "me", entity: "team", project: "demo", name: "fork" }, baseModel: null };
    const from = { modelId: model.id, step: 1, owner: "me" };
    await expect(models.create({ ...fork, returnExisting: false, from })).rejects.toThrow(/step 1 are damaged/);
    expect((await models.steps(model.id, "me")).map(({ step }) => step)).toEqual([0, 1]);
    expect((await models.rollback(model.id, "me", 0)).step).toBe(2);
  });

  it("keeps a published step when the job's files cannot be deleted or a listener fails", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const remove = vi.spyOn(StepFolders.prototype, "removeJob").mockImplementationOnce(() => {
      throw Object.assign(new Error("resource busy or locked"), { code: "EBUSY" });
    });
    try {
      const first = await submit(bench, model.id);
      await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
      expect(await bench.service.jobs.owned(first.id, "me")).toMatchObject({ status: "COMPLETED", toStep: 1 });
    } finally {
      remove.mockRestore();
    }
    const second = await submit(bench, model.id);
    bench.service.jobs.watch(second.id, () => {
      throw new Error("a follower that fails");
    });
    await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
    expect(await bench.service.jobs.owned(second.id, "me")).toMatchObject({ status: "COMPLETED", toStep: 2 });
    for (const step of [1, 2]) expect(existsSync(stepFolder(bench, model.id, step))).toBe(true);
  });

  it("removes the files of a rollback that cannot be recorded", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const insert = vi.spyOn(ModelTable.prototype, "insertStep").mockImplementationOnce(() => {
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    });
    await expect(bench.service.models.rollback(model.id, "me", 0)).rejects.toMatchObject({ code: "SQLITE_FULL" });
    insert.mockRestore();
    expect(readdirSync(join(bench.folder, "training", "models", model.id))).toEqual([
      expect.stringMatching(/^step-0-/),
    ]);
  });

  it("keeps a step that a request starts to use while others are deleted", async () => {
    const bench = await start();
    const model = await newModel(bench);
    for (let i = 0; i < 3; i++) await ended(bench, await submit(bench, model.id));
    let inUse = () => {};
    const used = new Promise<void>((resolve) => (inUse = resolve));
    const { remove } = StepRetention.prototype;
    const removing = vi.spyOn(StepRetention.prototype, "remove").mockImplementation(async function (
      this: StepRetention,
      id,
      step,
    ) {
      if (step === 2) await used;
      return remove.call(this, id, step);
    });
    const deleting = bench.service.models.deleteSteps(model.id, "me", [1, 2]);
    const lease = await bench.service.policies.acquire("agent@2", "me");
    inUse();
    expect(await deleting).toMatchObject({ deletedCount: 1, keptSteps: [2] });
    expect(existsSync(stepFolder(bench, model.id, 2))).toBe(true);
    removing.mockRestore();
    lease!.release();
  });

  it("on a full disk refuses new jobs and fails running ones, and continues when there is space", async () => {
    const full = (code: string) => Object.assign(new Error("no space left"), { code });
    const bench = await start();
    const model = await newModel(bench);
    const draft = await bench.service.jobs.draft("me");
    vi.spyOn(draft.input, "finish").mockRejectedValue(full("ENOSPC"));
    const submission = { owner: "me", modelId: model.id, idempotencyKey: null, requestHash: "" };
    const spec = { kind: "rl" as const, config: RL_DEFAULTS };
    await expect(bench.service.jobs.submit(draft, { ...submission, spec })).rejects.toMatchObject({ code: "ENOSPC" });
    expect(jobFolders(bench)).toEqual([]);

    const reserve = join(bench.folder, "training", "reserve");
    expect(statSync(reserve).size).toBe(2 ** 20);
    const finish = vi.spyOn(JobJournal.prototype, "finish").mockImplementationOnce(() => {
      throw full("SQLITE_FULL");
    });
    const job = await submit(bench, model.id);
    expect((await ended(bench, job)).at(-1)).toMatchObject({
      type: "training_failed",
      data: { error_message: "the server's disk is full" },
    });
    expect(finish).toHaveBeenCalledTimes(2);
    // it fails once more, in recording the failure: the room kept aside is given up for it
    finish.mockImplementationOnce(() => {
      throw full("SQLITE_FULL");
    });
    finish.mockImplementationOnce(() => {
      throw full("SQLITE_FULL");
    });
    await ended(bench, await submit(bench, model.id));
    expect(existsSync(reserve)).toBe(false);
    expect(readdirSync(join(bench.folder, "training", "models", model.id)).filter((name) => name !== "curves")).toEqual(
      [expect.stringMatching(/^step-0-/)],
    );
    await ended(bench, await submit(bench, model.id));
    await expect.poll(() => existsSync(reserve)).toBe(true);
    expect((await bench.service.models.step(model.id, "me", "latest")).step).toBe(1);
    finish.mockRestore();
    expect(await wrong(bench)).toEqual([]);
  });

  it("accepts and starts no job while there is no space to record its end", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ maxParallelJobs: 1, trainer });
    const model = await newModel(bench);
    const first = await submit(bench, model.id);
    const second = await submit(bench, model.id);
    const keep = vi.spyOn(StepFolders.prototype, "keepReserve").mockReturnValue(false);
    try {
      await expect(bench.service.jobs.draft("me")).rejects.toMatchObject({ code: "storage_full" });
      letGo();
      await ended(bench, first);
      expect(await ended(bench, second)).toMatchObject([
        { type: "training_failed", data: { error_message: "the server's disk is full" } },
      ]);
      await expect.poll(() => jobFolders(bench)).toEqual([]);
    } finally {
      keep.mockRestore();
    }
    expect((await ended(bench, await submit(bench, model.id))).at(-1)).toMatchObject({ data: { step: 2 } });
    expect(await wrong(bench)).toEqual([]);
  });

  it("deletes and cancels on a full disk, using the reserve", async () => {
    const { trainer, hold, letGo } = heldTrainer();
    const bench = await start({ maxParallelJobs: 1, trainer });
    const { models, jobs } = bench.service;
    const model = await newModel(bench);
    letGo();
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    hold();
    const release = vi.spyOn(StepFolders.prototype, "releaseReserve");
    const full = () => {
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    };
    vi.spyOn(ModelTable.prototype, "deleteStep").mockImplementationOnce(full);
    expect(await models.deleteSteps(model.id, "me", [1])).toMatchObject({ deletedCount: 1 });
    expect(existsSync(stepFolder(bench, model.id, 1))).toBe(false);

    const job = await submit(bench, model.id);
    await expect.poll(async () => (await jobs.owned(job.id, "me")).status, { interval: 1 }).toBe("RUNNING");
    vi.spyOn(JobTable.prototype, "requestCancel").mockImplementationOnce(full);
    await jobs.cancel(job.id, "me");
    expect((await ended(bench, job)).at(-1)!.data).toEqual({ error_message: "cancelled" });

    await submit(bench, model.id);
    vi.spyOn(JobTable.prototype, "requestCancel").mockImplementationOnce(full);
    vi.spyOn(ModelTable.prototype, "delete").mockImplementationOnce(full);
    expect(await models.delete(model.id, "me")).toEqual({ deletedCheckpoints: 2 });
    expect(readdirSync(join(bench.folder, "training", "models"))).toEqual([]);
    expect(release).toHaveBeenCalledTimes(4);
    expect(existsSync(join(bench.folder, "training", "reserve"))).toBe(true);
    vi.restoreAllMocks();
  });

  it("names the place of a corrupt record in the failure", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const group = scored(["a1 <e>", 1], ["a2 <e>", 0]);
    const item = group.trajectories[1]!.histories[0]!.items[1]!;
    if ("choice" in item) item.choice.logprobs = [-1];
    const events = await ended(bench, await submit(bench, model.id, [group]));
    expect(events.at(-1)!.data.error_message).toMatch(/group 0, trajectory 1, messages_and_choices\[1\]/);
  });

  it("continues after an orderly stop without repeating an event", async () => {
    const folder = mkdtempSync(join(tmpdir(), "training-"));
    try {
      const many = scored(...Array.from({ length: 12 }, (_, i) => ["a1 <e>", i % 2] as const));
      const first = await trainingBench({ folder, trainer: fakeTrainer(20) });
      const model = await newModel(first);
      const job = await submit(first, model.id, [many]);
      await expect.poll(async () => (await first.service.jobs.events(job.id, null, 100)).length).toBeGreaterThan(3);
      await first.close();
      const second = await trainingBench({ folder });
      expect((await second.service.jobs.owned(job.id, "me")).attempts).toBeLessThanOrEqual(1);
      const events = await ended(second, job);
      expect(events.map(({ type }) => type)).toEqual([
        "training_started",
        ...new Array(12).fill("gradient_step"),
        "training_ended",
      ]);
      await second.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
