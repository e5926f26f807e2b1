import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { PROJECT_STORE } from "../../test/support/stores.ts";
import {
  benchesOfTest,
  ended,
  fakeTrainer,
  faulty,
  heldTrainer,
  jobFolders,
  newModel,
  stepFolder,
  submit,
} from "../../test/support/training-service.ts";
import { GroupLog } from "./data/group-metrics.ts";
import type { TrainingError } from "./training-error.ts";

const start = benchesOfTest();

describe("models", () => {
  it("has a servable step 0, is found by name, and refuses a name that is taken", async () => {
    const bench = await start();
    const model = await newModel(bench);
    expect((await bench.service.models.steps(model.id, "me")).map(({ step }) => step)).toEqual([0]);
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease).toMatchObject({ step: 0, adapter: null });
    lease!.release();
    const again = { owner: "me", entity: "team", project: "demo", name: "agent", baseModel: "tiny-llama", from: null };
    expect((await bench.service.models.create({ ...again, returnExisting: true })).id).toBe(model.id);
    await expect(bench.service.models.create({ ...again, returnExisting: false })).rejects.toThrow(/exists already/);
    await expect(
      bench.service.models.create({ ...again, name: "x", baseModel: "y", returnExisting: true }),
    ).rejects.toThrow(/known: tiny/);
  });

  it("belongs to its owner only", async () => {
    const bench = await start();
    const model = await newModel(bench);
    await expect(bench.service.models.owned(model.id, "you")).rejects.toThrow(/no model/);
    expect(await bench.service.policies.acquire("agent", "you")).toBeNull();
    const other = await newModel(bench, "agent", "you");
    expect(other.id).not.toBe(model.id);
  });

  it("forks a step at its number and rolls back to an old one as a new step", async () => {
    const bench = await start();
    const model = await newModel(bench);
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
    const fork = await bench.service.models.create({ ...request, from: { modelId: model.id, step: 1, owner: "me" } });
    expect((await bench.service.models.steps(fork.id, "me")).map(({ step }) => step)).toEqual([1]);
    expect(weights(fork.id, 1)).toBe(weights(model.id, 1));
    await ended(bench, await submit(bench, fork.id));
    expect((await bench.service.models.steps(fork.id, "me")).map(({ step }) => step)).toEqual([1, 2]);

    const rolled = await bench.service.models.rollback(model.id, "me", 1);
    expect(rolled.step).toBe(3);
    expect(weights(model.id, 3)).toBe(weights(model.id, 1));
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease!.step).toBe(3);
    lease!.release();
    await expect(bench.service.models.rollback(model.id, "me", 9)).rejects.toThrow(/no step 9/);
  });

  it("gives simultaneous rollbacks different steps", async () => {
    const bench = await start();
    const model = await newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const rollbacks = [0, 1, 0].map((step) => bench.service.models.rollback(model.id, "me", step));
    expect((await Promise.all(rollbacks)).map(({ step }) => step).sort()).toEqual([2, 3, 4]);
  });

  it("answers a rollback with its step even if the model is deleted meanwhile", async () => {
    const bench = await start();
    const model = await newModel(bench);
    await ended(bench, await submit(bench, model.id));
    vi.spyOn(bench.slots, "preload").mockImplementationOnce(async () => {
      await bench.service.models.delete(model.id, "me");
    });
    expect(await bench.service.models.rollback(model.id, "me", 1)).toMatchObject({
      modelId: model.id,
      step: 2,
      metrics: { rolled_back_to: 1 },
    });
    await expect(bench.service.models.owned(model.id, "me")).rejects.toThrow(/no model/);
    expect(existsSync(join(bench.folder, "training", "models", model.id))).toBe(false);
  });

  it("removes old steps after a rollback, as after a job", async () => {
    const bench = await start({ maxStepsPerModel: 2 });
    const model = await newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    await bench.service.models.rollback(model.id, "me", 1);
    expect((await bench.service.models.steps(model.id, "me")).map(({ step }) => step)).toEqual([2, 3]);
  });

  it("forks a model whose base model was renamed", async () => {
    const bench = await start();
    const source = await newModel(bench);
    Object.assign(bench.service.bases.get("tiny")!, { name: "large", aliases: ["tiny"] });
    const fork = { ...{ owner: "me", entity: "team", project: "demo" }, returnExisting: false };
    const from = { modelId: source.id, step: 0, owner: "me" };
    for (const [i, baseModel] of [null, "tiny", "large"].entries()) {
      const made = await bench.service.models.create({ ...fork, name: `fork${i}`, baseModel, from });
      expect(made.baseModel).toBe("large");
    }
    Object.assign(bench.service.bases.get("tiny")!, { aliases: [] });
    const lost = () => bench.service.models.create({ ...fork, name: "lost", baseModel: "large", from });
    await expect(lost()).rejects.toThrow(/keeps the base model of its source, tiny/);
  });

  it("never removes the newest step or one in use, and never reuses a number", async () => {
    const bench = await start();
    const model = await newModel(bench);
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
    expect((await bench.service.models.steps(model.id, "me")).map(({ step }) => step)).toEqual([3, 4]);
  });

  it("is deleted with its jobs and events, and watchers of open jobs are told", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ trainer });
    const [model, other] = [await newModel(bench), await newModel(bench, "other")];
    const kept = await submit(bench, other.id);
    const over = await submit(bench, model.id, []);
    await ended(bench, over);
    const open = [await submit(bench, model.id), await submit(bench, model.id)];
    const told: unknown[] = [];
    for (const { id } of open) {
      bench.service.jobs.watch(id, (event) => {
        const { type, data } = event!;
        if (type === "training_failed") told.push(data.error_message);
      });
    }
    expect(await bench.service.models.delete(model.id, "me")).toEqual({ deletedCheckpoints: 2 });
    expect(told).toEqual(new Array(2).fill(expect.stringContaining("its model was deleted")));
    letGo();
    await ended(bench, kept);
    expect((await bench.service.jobs.list("me", null, null, null, 10)).map(({ id }) => id)).toEqual([kept.id]);
    for (const { id } of [over, ...open]) {
      await expect(bench.service.jobs.owned(id, "me")).rejects.toThrow(/no training job/);
      await expect(bench.service.jobs.events(id, null, 10)).rejects.toThrow(/no training job/);
    }
    expect(existsSync(join(bench.folder, "training", "models", model.id))).toBe(false);
    await expect.poll(() => jobFolders(bench)).toEqual([]);
  });

  it("ends jobs that arrive while it is being deleted, and accepts none afterwards", async () => {
    const bench = await start({ trainer: fakeTrainer(20) });
    bench.service.bases.get("tiny")!.encoder = { ...bench.service.bases.get("tiny")!.encoder, vocabSize: 256 };
    const model = await newModel(bench);
    const stubborn = faulty(103);
    const many = Array.from({ length: 2000 }, (_, i) => stubborn.trajectories[i % 2]!);
    const running = await submit(bench, model.id, [{ ...stubborn, trajectories: many }]);
    await new Promise<void>((resolve) => {
      bench.service.jobs.watch(running.id, (event) => event?.type === "gradient_step" && resolve());
    });
    const coming = submit(bench, model.id);
    const deleted = bench.service.models.delete(model.id, "me");
    // PostgreSQL may let the later one of two transactions go first
    const late = await coming.catch((error: TrainingError) => {
      if (PROJECT_STORE === "SQLite" || error.code !== "unknown_model") throw error;
      return null;
    });
    await deleted;
    if (late) await expect(bench.service.jobs.owned(late.id, "me")).rejects.toThrow(/no training job/);
    await expect(submit(bench, model.id)).rejects.toMatchObject({ code: "unknown_model" });
    expect(await bench.service.stats()).toEqual({ running: 0, pending: 0 });
    expect(jobFolders(bench)).toEqual([]);
  });

  it("merges logged metrics into the newest step", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const groups = new GroupLog();
    for (const reward of [1, 0]) groups.addTrajectory({ reward, metrics: {} });
    groups.addGroup({ exceptions: 0, metrics: {} });
    const metrics = await bench.service.models.log(model.id, "me", "val", groups);
    expect(metrics["val/reward"]).toBe(0.5);
    expect((await bench.service.models.step(model.id, "me", "latest")).metrics).toMatchObject({ "val/reward": 0.5 });
  });
});
