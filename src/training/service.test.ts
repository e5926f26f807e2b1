import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type BenchOptions,
  ended,
  fakeTrainer,
  newModel,
  scored,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../test/training-bench.ts";

import { ModelTable } from "../store/model-table.ts";
import { RL_DEFAULTS } from "./config.ts";
import { Workspace } from "./workspace.ts";

const open: TrainingBench[] = [];
function start(options: BenchOptions = {}): TrainingBench {
  const bench = trainingBench(options);
  open.push(bench);
  return bench;
}
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});

const stepFolder = (bench: TrainingBench, model: string, step: number) =>
  join(bench.folder, "training", "models", model, `step-${step}`);
const files = (bench: TrainingBench) => readdirSync(join(bench.folder, "training", "jobs"));

/** A group that makes the fake trainer misbehave in the way of that id, which must be in the vocabulary. */
const faulty = (id: number) => {
  const group = scored(["a1 <e>", 1], ["a2 <e>", 0]);
  for (const { histories } of group.trajectories) {
    const item = histories[0]!.items[1]!;
    if ("choice" in item) item.choice.promptTokenIds = [id];
  }
  return group;
};

describe("models", () => {
  it("has a servable step 0, is found again, and does not take a name twice", async () => {
    const bench = start();
    const model = newModel(bench);
    expect(bench.service.models.steps(model.id, "me").map(({ step }) => step)).toEqual([0]);
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease).toMatchObject({ step: 0, adapter: null });
    lease!.release();
    const again = { owner: "me", entity: "team", project: "demo", name: "agent", baseModel: "tiny-llama", from: null };
    expect(bench.service.models.create({ ...again, returnExisting: true }).id).toBe(model.id);
    expect(() => bench.service.models.create({ ...again, returnExisting: false })).toThrow(/exists already/);
    expect(() => bench.service.models.create({ ...again, name: "x", baseModel: "y", returnExisting: true })).toThrow(
      /known: tiny/,
    );
  });

  it("belongs to its owner alone", async () => {
    const bench = start();
    const model = newModel(bench);
    expect(() => bench.service.models.owned(model.id, "you")).toThrow(/no model/);
    expect(await bench.service.policies.acquire("agent", "you")).toBeNull();
    const other = newModel(bench, "agent", "you");
    expect(other.id).not.toBe(model.id);
  });

  it("forks a step at its number and rolls back to an old one as a new step", async () => {
    const bench = start();
    const model = newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    const weights = (id: string, step: number) =>
      readFileSync(join(stepFolder(bench, id, step), "adapter_model.safetensors")).toString("hex");

    const request = {
      owner: "me",
      entity: "team",
      project: "demo",
      name: "fork",
      baseModel: null,
      returnExisting: false,
    };
    const fork = bench.service.models.create({ ...request, from: { modelId: model.id, step: 1 } });
    expect(bench.service.models.steps(fork.id, "me").map(({ step }) => step)).toEqual([1]);
    expect(weights(fork.id, 1)).toBe(weights(model.id, 1));
    await ended(bench, await submit(bench, fork.id));
    expect(bench.service.models.steps(fork.id, "me").map(({ step }) => step)).toEqual([1, 2]);

    const rolled = await bench.service.models.rollback(model.id, "me", 1);
    expect(rolled.step).toBe(3);
    expect(weights(model.id, 3)).toBe(weights(model.id, 1));
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease!.step).toBe(3);
    lease!.release();
    await expect(bench.service.models.rollback(model.id, "me", 9)).rejects.toThrow(/no step 9/);
  });

  it("gives rollbacks that come at once a step each", async () => {
    const bench = start();
    const model = newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const rollbacks = [0, 1, 0].map((step) => bench.service.models.rollback(model.id, "me", step));
    expect((await Promise.all(rollbacks)).map(({ step }) => step)).toEqual([2, 3, 4]);
  });

  it("never prunes the newest step or one in use, and never gives a number again", async () => {
    const bench = start();
    const model = newModel(bench);
    for (let i = 0; i < 3; i++) await ended(bench, await submit(bench, model.id));
    const lease = await bench.service.policies.acquire("agent@1", "me");
    expect(await bench.service.models.deleteSteps(model.id, "me", [0, 1, 2, 3, 3, 77])).toEqual({
      deletedCount: 2,
      notFoundSteps: [77],
      keptSteps: [1, 3],
    });
    lease!.release();
    expect((await bench.service.models.deleteSteps(model.id, "me", [1])).deletedCount).toBe(1);
    expect(existsSync(stepFolder(bench, model.id, 1))).toBe(false);
    expect(await bench.service.policies.acquire("agent@1", "me")).toBeNull();
    await ended(bench, await submit(bench, model.id));
    expect(bench.service.models.steps(model.id, "me").map(({ step }) => step)).toEqual([3, 4]);
  });

  it("goes with everything it has, jobs and events too, and its open jobs are told", async () => {
    const bench = start({ trainer: fakeTrainer(50) });
    const [model, other] = [newModel(bench), newModel(bench, "other")];
    const kept = await submit(bench, other.id);
    const over = await submit(bench, model.id, []);
    await ended(bench, over);
    const open = [await submit(bench, model.id), await submit(bench, model.id)];
    const told: unknown[] = [];
    for (const { id } of open) {
      bench.service.jobs.watch(id, ({ type, data }) => {
        if (type === "training_failed") told.push(data.error_message);
      });
    }
    expect(await bench.service.models.delete(model.id, "me")).toEqual({ deletedCheckpoints: 2 });
    expect(told).toEqual(new Array(2).fill(expect.stringContaining("its model was deleted")));
    await ended(bench, kept);
    expect(bench.service.jobs.list("me", null, null, null, 10).map(({ id }) => id)).toEqual([kept.id]);
    for (const { id } of [over, ...open]) {
      expect(() => bench.service.jobs.owned(id, "me")).toThrow(/no training job/);
      expect(() => bench.service.jobs.events(id, null, 10)).toThrow(/no training job/);
    }
    expect(existsSync(join(bench.folder, "training", "models", model.id))).toBe(false);
    expect(files(bench)).toEqual([]);
  });

  it("takes jobs along that come while it is going, and no more afterwards", async () => {
    const bench = start({ trainer: fakeTrainer(20) });
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = newModel(bench);
    const stubborn = faulty(103);
    const many = Array.from({ length: 200 }, (_, i) => stubborn.trajectories[i % 2]!);
    const running = await submit(bench, model.id, [{ ...stubborn, trajectories: many }]);
    await new Promise<void>((resolve) => {
      bench.service.jobs.watch(running.id, ({ type }) => type === "gradient_step" && resolve());
    });
    const coming = submit(bench, model.id);
    const deleted = bench.service.models.delete(model.id, "me");
    const late = await coming;
    await deleted;
    expect(() => bench.service.jobs.owned(late.id, "me")).toThrow(/no training job/);
    await expect(submit(bench, model.id)).rejects.toMatchObject({ code: "unknown_training_model" });
    expect(bench.service.stats()).toEqual({ running: 0, pending: 0 });
    expect(files(bench)).toEqual([]);
  });

  it("merges logged metrics into the newest step", async () => {
    const bench = start();
    const model = newModel(bench);
    const metrics = bench.service.models.log(model.id, "me", "val", [scored(["a1", 1], ["a2", 0])]);
    expect(metrics["val/reward"]).toBe(0.5);
    expect(bench.service.models.step(model.id, "me", "latest").metrics).toMatchObject({ "val/reward": 0.5 });
  });
});

describe("jobs", () => {
  it("trains, publishes before it says so, and reports every trajectory", async () => {
    const bench = start();
    const model = newModel(bench);
    let servedAtTheEnd: string | null = null;
    const job = await submit(bench, model.id, [scored(["a1 <e>", 1], ["a2 <e>", 0]), scored(["a3", 1], ["yes", 1])]);
    bench.service.jobs.watch(job.id, ({ type }) => {
      if (type !== "training_ended") return;
      const found = bench.service.policies.find("wandb-artifact:///team/demo/agent", "me")!;
      servedAtTheEnd = `${found.step} ${bench.engine.loads.at(-1)?.endsWith("step-1")}`;
    });
    const events = await ended(bench, job);
    expect(servedAtTheEnd).toBe("1 true");
    expect(events.map(({ type }) => type)).toEqual([
      "training_started",
      "gradient_step",
      "gradient_step",
      "training_ended",
    ]);
    expect(events[0]!.data).toEqual({ num_sequences: 2 });
    for (const value of Object.values(events[1]!.data)) expect(Number.isFinite(value)).toBe(true);
    expect(events[1]!.data).toMatchObject({ reward: 0.75, num_groups_submitted: 2, num_groups_trainable: 1 });
    const done = bench.service.jobs.owned(job.id, "me");
    expect(done).toMatchObject({ status: "COMPLETED", progress: 1, fromStep: 0, toStep: 1, errorMessage: null });
    const report = JSON.parse(done.report!) as { trajectories: { status: string }[]; usage: { tokens: number } };
    expect(report.trajectories.map(({ status }) => status)).toEqual([
      "trained",
      "trained",
      "zero_advantage",
      "zero_advantage",
    ]);
    expect(report.usage.tokens).toBe(22);
    expect(files(bench)).toEqual([]);
    expect(bench.service.models.step(model.id, "me", 1).metrics).toMatchObject({ "train/reward": 0.75, grad_norm: 1 });
  });

  it("advances the step even when nothing was trainable", async () => {
    const bench = start();
    const model = newModel(bench);
    const events = await ended(bench, await submit(bench, model.id, []));
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["training_started", { num_sequences: 0 }],
      ["training_ended", { step: 1 }],
    ]);
    expect(bench.service.models.step(model.id, "me", "latest").step).toBe(1);
  });

  it("gives the same events and the same adapter for the same job from the same step", async () => {
    const runs = [];
    for (let i = 0; i < 2; i++) {
      const bench = start();
      const model = newModel(bench);
      const events = await ended(bench, await submit(bench, model.id));
      const adapter = readFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"));
      runs.push({ events: events.map(({ type, data }) => [type, data]), adapter: adapter.toString("hex") });
    }
    expect(runs[0]).toEqual(runs[1]);
  });

  it("runs a model's jobs in order and different models side by side", async () => {
    const bench = start({ trainer: fakeTrainer(20) });
    const [a, b] = [newModel(bench, "a"), newModel(bench, "b")];
    const order: string[] = [];
    const jobs = [];
    for (const [label, model] of [
      ["a1", a],
      ["a2", a],
      ["b1", b],
    ] as const) {
      const job = await submit(bench, model.id);
      bench.service.jobs.watch(job.id, ({ type }) => {
        if (type !== "gradient_step") order.push(`${label} ${type === "training_started" ? "start" : "end"}`);
      });
      jobs.push(job);
    }
    for (const job of jobs) await ended(bench, job);
    expect(order.indexOf("a2 start")).toBeGreaterThan(order.indexOf("a1 end"));
    expect(order.indexOf("b1 start")).toBeLessThan(order.indexOf("a1 end"));
    expect(bench.service.models.steps(a.id, "me")).toHaveLength(3);
  });

  it("cancels a waiting job at once and a running one within a step", async () => {
    const bench = start({ trainer: fakeTrainer(30), maxParallelJobs: 1 });
    const model = newModel(bench);
    const many = scored(...Array.from({ length: 40 }, (_, i) => ["a1 <e>", i % 2] as const));
    const running = await submit(bench, model.id, [many]);
    const waiting = await submit(bench, model.id);
    expect(bench.service.jobs.cancel(waiting.id, "me").status).toBe("CANCELLED");
    await new Promise<void>((resolve) => {
      bench.service.jobs.watch(running.id, ({ type }) => type === "gradient_step" && resolve());
    });
    bench.service.jobs.cancel(running.id, "me");
    const events = await ended(bench, running);
    expect(events.length).toBeLessThan(10);
    expect(events.at(-1)).toMatchObject({ type: "training_failed", data: { error_message: "cancelled" } });
    expect(bench.service.jobs.owned(running.id, "me").status).toBe("CANCELLED");
    expect(bench.service.jobs.cancel(running.id, "me").status).toBe("CANCELLED");
    expect(bench.service.models.step(model.id, "me", "latest").step).toBe(0);
    expect(() => bench.service.jobs.cancel(running.id, "you")).toThrow(/no training job/);
  });

  it("answers a repeated idempotency key with the first job, and refuses another body under it", async () => {
    const bench = start();
    const model = newModel(bench);
    const first = await submit(bench, model.id, undefined, { key: "k" });
    expect((await submit(bench, model.id, undefined, { key: "k" })).id).toBe(first.id);
    await expect(submit(bench, model.id, [], { key: "k" })).rejects.toThrow(/another body/);
    await ended(bench, first);
    expect(files(bench)).toEqual([]);
    expect(bench.service.jobs.list("me", null, null, null, 10)).toHaveLength(1);
  });

  it("keeps to the quotas", async () => {
    const bench = start({ maxOpenJobs: 1, maxStepsPerModel: 2, trainer: fakeTrainer(30) });
    const model = newModel(bench);
    const first = await submit(bench, model.id);
    await expect(submit(bench, model.id)).rejects.toThrow(/At most 1 jobs/);
    await ended(bench, first);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    await expect
      .poll(() => bench.service.models.steps(model.id, "me").map(({ step }) => step), { timeout: 20_000 })
      .toEqual([2, 3]);
    const full = start({ maxBytesPerOwner: 10 });
    await expect(submit(full, newModel(full).id)).rejects.toThrow(/delete some before training on/);
    expect(files(full)).toEqual([]);
  });

  it("writes the curves once, as JSON lines and for TensorBoard", async () => {
    const bench = start();
    const model = newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    const folder = join(bench.folder, "training", "models", model.id, "curves");
    const lines = () =>
      readFileSync(join(folder, "metrics.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { step: number; gradient_step: number });
    await expect.poll(() => existsSync(join(folder, "events.out.tfevents.step-2")), { timeout: 20_000 }).toBe(true);
    await expect
      .poll(() => lines().map(({ step, gradient_step }) => [step, gradient_step]), { timeout: 20_000 })
      .toEqual([
        [1, 1],
        [1, 2],
        [2, 3],
        [2, 4],
      ]);
  });
});

describe("faults", () => {
  it.each([
    ["crashes", 101, /^the trainer process ended with code 7; the server's log has its last words$/],
    ["reports a failure", 102, /told to fail/],
    ["writes a corrupt adapter", 104, /adapter_model/],
  ])("a trainer that %s fails its job with the reason, and the next job runs", async (_what, id, reason) => {
    const bench = start();
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = newModel(bench);
    const job = await submit(bench, model.id, [faulty(id)]);
    const events = await ended(bench, job);
    expect(events.at(-1)!.type).toBe("training_failed");
    expect(bench.service.jobs.owned(job.id, "me")).toMatchObject({
      status: "FAILED",
      errorMessage: expect.stringMatching(reason),
    });
    expect(readdirSync(join(bench.folder, "training", "models", model.id))).toEqual(["step-0"]);
    expect((await ended(bench, await submit(bench, model.id))).at(-1)!.type).toBe("training_ended");
    expect(bench.service.models.step(model.id, "me", "latest").step).toBe(1);
  });

  it("kills a trainer that does not react to a cancellation", async () => {
    const bench = start({ trainer: fakeTrainer(20) });
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = newModel(bench);
    const group = faulty(103);
    const many = { ...group, trajectories: Array.from({ length: 200 }, (_, i) => group.trajectories[i % 2]!) };
    const job = await submit(bench, model.id, [many]);
    await new Promise<void>((resolve) => {
      bench.service.jobs.watch(job.id, ({ type }) => type === "gradient_step" && resolve());
    });
    bench.service.jobs.cancel(job.id, "me");
    expect((await ended(bench, job)).at(-1)!.data).toEqual({ error_message: "cancelled" });
  });

  it("fails a job whose base model, starting weights or data are gone, and goes on", async () => {
    const bench = start({ maxParallelJobs: 1, trainer: fakeTrainer(50) });
    const model = newModel(bench);
    const first = await submit(bench, model.id);
    const second = await submit(bench, model.id);
    rmSync(join(bench.folder, "training", "jobs", second.id, "input.jsonl"));
    await ended(bench, first);
    const missing = (await ended(bench, second)).at(-1)!.data.error_message;
    expect(missing).toMatch(/ENOENT/);
    expect(missing).not.toContain(bench.folder);

    writeFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"), "rubbish");
    const third = await ended(bench, await submit(bench, model.id));
    expect(third.at(-1)!.type).toBe("training_failed");
    expect(third.at(-1)!.data.error_message).not.toContain(bench.folder);
  });

  it("copies no step whose files are damaged", async () => {
    const bench = start();
    const model = newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const { models } = bench.service;
    writeFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"), "rubbish");
    await expect(models.rollback(model.id, "me", 1)).rejects.toMatchObject({ code: "damaged_checkpoint" });
    const fork = { ...{ owner: "me", entity: "team", project: "demo", name: "fork" }, baseModel: null };
    const from = { modelId: model.id, step: 1 };
    expect(() => models.create({ ...fork, returnExisting: false, from })).toThrow(/step 1 are damaged/);
    expect(models.steps(model.id, "me").map(({ step }) => step)).toEqual([0, 1]);
    expect((await models.rollback(model.id, "me", 0)).step).toBe(2);
  });

  it("keeps a published step whose job's files cannot be deleted, or whose followers fail", async () => {
    const bench = start();
    const model = newModel(bench);
    const remove = vi.spyOn(Workspace.prototype, "removeJob").mockImplementationOnce(() => {
      throw Object.assign(new Error("resource busy or locked"), { code: "EBUSY" });
    });
    try {
      const first = await submit(bench, model.id);
      await vi.waitFor(() => expect(bench.service.stats()).toEqual({ running: 0, pending: 0 }), 5_000);
      expect(bench.service.jobs.owned(first.id, "me")).toMatchObject({ status: "COMPLETED", toStep: 1 });
    } finally {
      remove.mockRestore();
    }
    const second = await submit(bench, model.id);
    bench.service.jobs.watch(second.id, () => {
      throw new Error("a follower that fails");
    });
    await vi.waitFor(() => expect(bench.service.stats()).toEqual({ running: 0, pending: 0 }), 5_000);
    expect(bench.service.jobs.owned(second.id, "me")).toMatchObject({ status: "COMPLETED", toStep: 2 });
    for (const step of [1, 2]) expect(existsSync(stepFolder(bench, model.id, step))).toBe(true);
  });

  it("leaves no files of a rollback that cannot be recorded", async () => {
    const bench = start();
    const model = newModel(bench);
    const insert = vi.spyOn(ModelTable.prototype, "insertStep").mockImplementationOnce(() => {
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    });
    await expect(bench.service.models.rollback(model.id, "me", 0)).rejects.toMatchObject({ status: 507 });
    insert.mockRestore();
    expect(readdirSync(join(bench.folder, "training", "models", model.id))).toEqual(["step-0"]);
  });

  it("keeps a step that a request takes while others are deleted", async () => {
    const bench = start();
    const model = newModel(bench);
    for (let i = 0; i < 3; i++) await ended(bench, await submit(bench, model.id));
    const deleting = bench.service.models.deleteSteps(model.id, "me", [1, 2]);
    const lease = await bench.service.policies.acquire("agent@2", "me");
    expect(await deleting).toMatchObject({ deletedCount: 1, keptSteps: [2] });
    expect(existsSync(stepFolder(bench, model.id, 2))).toBe(true);
    lease!.release();
  });

  it("survives a full disk: refuses what it cannot keep, ends what it cannot finish, and goes on when there is room", async () => {
    const full = (code: string) => Object.assign(new Error("no space left"), { code });
    const bench = start();
    const model = newModel(bench);
    const draft = await bench.service.jobs.draft();
    vi.spyOn(draft.input, "finish").mockRejectedValue(full("ENOSPC"));
    const submission = { owner: "me", modelId: model.id, idempotencyKey: null, requestHash: "" };
    const spec = { kind: "rl" as const, config: RL_DEFAULTS };
    await expect(bench.service.jobs.submit(draft, { ...submission, spec })).rejects.toMatchObject({ status: 507 });
    expect(files(bench)).toEqual([]);

    const reserve = join(bench.folder, "training", "reserve");
    expect(statSync(reserve).size).toBe(2 ** 20);
    const finish = vi.spyOn(bench.service.jobs, "finish").mockImplementationOnce(() => {
      throw full("SQLITE_FULL");
    });
    const job = await submit(bench, model.id);
    expect((await ended(bench, job)).at(-1)).toMatchObject({
      type: "training_failed",
      data: { error_message: "no space left" },
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
      ["step-0"],
    );
    await ended(bench, await submit(bench, model.id));
    await expect.poll(() => existsSync(reserve), { timeout: 20_000 }).toBe(true);
    expect(bench.service.models.step(model.id, "me", "latest").step).toBe(1);
  });

  it("names a corrupt record's place in the failure", async () => {
    const bench = start();
    const model = newModel(bench);
    const group = scored(["a1 <e>", 1], ["a2 <e>", 0]);
    const item = group.trajectories[1]!.histories[0]!.items[1]!;
    if ("choice" in item) item.choice.logprobs = [-1];
    const events = await ended(bench, await submit(bench, model.id, [group]));
    expect(events.at(-1)!.data.error_message).toMatch(/group 0, trajectory 1, messages_and_choices\[1\]/);
  });

  it("goes on after an orderly stop where it was, without repeating an event", async () => {
    const folder = mkdtempSync(join(tmpdir(), "training-"));
    try {
      const many = scored(...Array.from({ length: 12 }, (_, i) => ["a1 <e>", i % 2] as const));
      const first = trainingBench({ folder, trainer: fakeTrainer(20) });
      const model = newModel(first);
      const job = await submit(first, model.id, [many]);
      await expect
        .poll(() => first.service.jobs.events(job.id, null, 100).length, { timeout: 20_000 })
        .toBeGreaterThan(3);
      await first.close();
      const second = trainingBench({ folder });
      expect(second.service.jobs.owned(job.id, "me").attempts).toBeLessThanOrEqual(1);
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

  it("makes room for a policy by unloading the least recently used one", async () => {
    const bench = start({ maxLoras: 2 });
    const model = newModel(bench);
    for (let i = 0; i < 4; i++) await ended(bench, await submit(bench, model.id));
    expect(bench.engine.versions.size).toBe(2);
    const held = await bench.service.policies.acquire("agent@1", "me");
    const other = await bench.service.policies.acquire("agent:step2", "me");
    expect(bench.engine.versions).toEqual(new Set([held!.adapter, other!.adapter]));
    await expect(bench.service.policies.acquire("agent@3", "me")).rejects.toThrow(/adapter slot is in use/);
    other!.release();
    const third = await bench.service.policies.acquire("agent@3", "me");
    expect(bench.engine.versions).toEqual(new Set([held!.adapter, third!.adapter]));
  });
});

it("O17: scales the learning rate by how the spread of rewards shrank, from step 0 on", async () => {
  const bench = start();
  const model = newModel(bench);
  const config = { scaleLearningRateByRewardStdDev: true };
  const rates: unknown[] = [];
  for (const reward of [1, 0.8, 0.9, 0.6]) {
    const groups = [scored(["a1 <e>", reward], ["a2 <e>", 0])];
    const events = await ended(bench, await submit(bench, model.id, groups, { config }));
    rates.push(events.find(({ type }) => type === "gradient_step")!.data.learning_rate);
    // a job without rewards to compare says nothing about them
    if (reward === 0.6) await ended(bench, await submit(bench, model.id, [], { config }));
  }
  expect(rates[0]).toBe(5e-6);
  expect(rates[3]).toBeCloseTo(5e-6 * 0.666666667, 13);
  expect(bench.service.models.step(model.id, "me", "latest").metrics).toEqual({ "train/exception_rate": 0 });
});

describe("steps and the engine's adapter slots", () => {
  /** A folder with an adapter of its own content, as an operator would name it. */
  const operatorAdapter = (bench: TrainingBench, name: string): string => {
    const step = stepFolder(bench, newModel(bench, name).id, 0);
    const folder = join(bench.folder, name);
    cpSync(step, folder, { recursive: true });
    const weights = readFileSync(join(folder, "adapter_model.safetensors"));
    weights.writeFloatLE(name.length, weights.length - 4);
    writeFileSync(join(folder, "adapter_model.safetensors"), weights);
    return folder;
  };
  const fork = (bench: TrainingBench, modelId: string) =>
    bench.service.models.create({
      ...{ owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null, returnExisting: false },
      from: { modelId, step: null },
    });

  it("publishes, rolls back and forks although the operator's adapters have every slot", async () => {
    const bench = start({ maxLoras: 2 });
    const model = newModel(bench);
    const held = await bench.slots.hold(operatorAdapter(bench, "o"));
    await bench.slots.hold(operatorAdapter(bench, "oo"));
    const events = await ended(bench, await submit(bench, model.id));
    expect(events.at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
    expect((await bench.service.models.rollback(model.id, "me", 0)).step).toBe(2);
    const forked = fork(bench, model.id);
    expect((await bench.service.models.rollback(forked.id, "me", 2)).step).toBe(3);
    await expect(bench.service.policies.acquire("agent@1", "me")).rejects.toMatchObject({
      code: "no_adapter_slot",
      retryAfter: 1,
      message: expect.stringContaining("by adapters that the operator loaded"),
    });
    expect(bench.engine.versions.size).toBe(2);
    await bench.slots.drop(held.version);
    const lease = await bench.service.policies.acquire("agent@1", "me");
    expect(bench.engine.versions).toContain(lease!.adapter);
  });

  it("publishes and rolls back although the engine cannot load", async () => {
    const bench = start();
    const model = newModel(bench);
    const load = vi.spyOn(bench.engine, "loadAdapter").mockRejectedValue(new Error("the engine thread ended"));
    expect((await ended(bench, await submit(bench, model.id))).at(-1)!.type).toBe("training_ended");
    expect((await bench.service.models.rollback(model.id, "me", 1)).step).toBe(2);
    load.mockRestore();
    expect((await bench.service.policies.acquire("agent", "me"))!.step).toBe(2);
  });

  it("gives a step's slot to the operator while a job trains from that step", async () => {
    const bench = start({ maxLoras: 1, trainer: fakeTrainer(400) });
    const model = newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const job = await submit(bench, model.id);
    await vi.waitFor(() => expect(bench.service.policies.inUse(model.id, 1)).toBe(true), { interval: 5 });
    const { version } = await bench.slots.hold(operatorAdapter(bench, "o"));
    expect(bench.engine.versions).toEqual(new Set([version]));
    expect((await ended(bench, job)).at(-1)!.type).toBe("training_ended");
  });

  it("shares the slot of an operator's adapter with the same content", async () => {
    const bench = start({ maxLoras: 1 });
    const model = newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const { version } = await bench.slots.hold(stepFolder(bench, model.id, 1));
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease!.adapter).toBe(version);
    lease!.release();
    await bench.service.models.rollback(model.id, "me", 0);
    await bench.service.models.deleteSteps(model.id, "me", [1]);
    expect(bench.engine.versions).toEqual(new Set([version]));
  });

  it("neither serves nor trains a model whose rank is larger than what the server is started with", async () => {
    const folder = mkdtempSync(join(tmpdir(), "training-"));
    try {
      const before = trainingBench({ folder });
      const model = newModel(before);
      await ended(before, await submit(before, model.id));
      await before.close();

      const bench = trainingBench({ folder, maxLoraRank: 1 });
      const refusal = { code: "adapter_rank_too_large", message: expect.stringContaining("rank 2, more than") };
      await expect(bench.service.policies.acquire("agent", "me")).rejects.toMatchObject(refusal);
      expect(bench.service.policies.answers(model)).toBe(false);
      expect(await bench.service.policies.acquire("agent@0", "me")).toMatchObject({ step: 0, adapter: null });
      const events = await ended(bench, await submit(bench, model.id));
      expect(events.map(({ type }) => type)).toEqual(["training_failed"]);
      expect(events[0]!.data.error_message).toContain("--max-lora-rank 1");
      expect(bench.service.models.steps(model.id, "me").map(({ step }) => step)).toEqual([0, 1]);
      await bench.close();

      const after = trainingBench({ folder });
      expect(await after.service.policies.acquire("agent", "me")).toMatchObject({ step: 1 });
      await after.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("lets a request finish on a model that is deleted, then frees its slot", async () => {
    const bench = start();
    const model = newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const lease = await bench.service.policies.acquire("agent", "me");
    await bench.service.models.delete(model.id, "me");
    expect(bench.engine.versions).toEqual(new Set([lease!.adapter]));
    lease!.release();
    await vi.waitFor(() => expect(bench.engine.versions.size).toBe(0));
  });
});
