import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  benchesOfTest,
  ended,
  fakeTrainer,
  heldTrainer,
  jobFolders,
  newModel,
  scored,
  stepFolder,
  submit,
  trainingBy,
} from "../../test/support/training-service.ts";
import { createLog } from "../observe/log.ts";
import type { JobRecord } from "../store/tables/jobs.ts";
import { RL_DEFAULTS, type RlConfig } from "./config.ts";
import { GroupLog } from "./data/group-metrics.ts";

const start = benchesOfTest();

describe("jobs", () => {
  it("trains, publishes the step before it announces it, and reports every trajectory", async () => {
    const bench = await start();
    const model = await newModel(bench);
    let servedAtTheEnd: ReturnType<typeof bench.service.policies.find> | null = null;
    let loadedAtTheEnd: string | undefined;
    let isUsedAtTheEnd: boolean | undefined;
    const job = await submit(bench, model.id, [scored(["a1 <e>", 1], ["a2 <e>", 0]), scored(["a3", 1], ["yes", 1])]);
    bench.service.jobs.watch(job.id, (event) => {
      const type = event?.type;
      if (type !== "training_ended") return;
      servedAtTheEnd = bench.service.policies.find("wandb-artifact:///team/demo/agent", "me");
      loadedAtTheEnd = bench.engine.loads.at(-1);
      isUsedAtTheEnd = bench.service.policies.inUse(model.id, 0);
    });
    const events = await ended(bench, job);
    expect(await servedAtTheEnd).toMatchObject({ step: 1 });
    expect(loadedAtTheEnd).toMatch(/step-1-[0-9a-f]{12}$/);
    expect(isUsedAtTheEnd).toBe(false); // it can be deleted at once
    expect(events.map(({ type }) => type)).toEqual([
      "training_started",
      "gradient_step",
      "gradient_step",
      "training_ended",
    ]);
    expect(events[0]!.data).toEqual({ num_sequences: 2 });
    for (const value of Object.values(events[1]!.data)) expect(Number.isFinite(value)).toBe(true);
    expect(events[1]!.data).toMatchObject({ reward: 0.75, num_groups_submitted: 2, num_groups_trainable: 1 });
    const done = await bench.service.jobs.owned(job.id, "me");
    expect(done).toMatchObject({ status: "COMPLETED", progress: 1, fromStep: 0, toStep: 1, errorMessage: null });
    const report = JSON.parse(done.report!) as { trajectories: { status: string }[]; usage: { tokens: number } };
    expect(report.trajectories.map(({ status }) => status)).toEqual([
      "trained",
      "trained",
      "zero_advantage",
      "zero_advantage",
    ]);
    expect(report.usage.tokens).toBe(22);
    await expect.poll(() => jobFolders(bench)).toEqual([]);
    expect((await bench.service.models.step(model.id, "me", 1)).metrics).toMatchObject({
      "train/reward": 0.75,
      grad_norm: 1,
    });
  });

  it("advances the step even when nothing was trainable", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const events = await ended(bench, await submit(bench, model.id, []));
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["training_started", { num_sequences: 0 }],
      ["training_ended", { step: 1 }],
    ]);
    expect((await bench.service.models.step(model.id, "me", "latest")).step).toBe(1);
  });

  it("gives the same events and the same adapter for the same job from the same step", async () => {
    const runs = [];
    for (let i = 0; i < 2; i++) {
      const bench = await start();
      const model = await newModel(bench);
      const events = await ended(bench, await submit(bench, model.id));
      const adapter = readFileSync(join(stepFolder(bench, model.id, 1), "adapter_model.safetensors"));
      runs.push({ events: events.map(({ type, data }) => [type, data]), adapter: adapter.toString("hex") });
    }
    expect(runs[0]).toEqual(runs[1]);
  });

  it("runs a model's jobs in order and different models side by side", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ trainer });
    const [a, b] = [await newModel(bench, "a"), await newModel(bench, "b")];
    const [a1, a2, b1] = [await submit(bench, a.id), await submit(bench, a.id), await submit(bench, b.id)];
    const order: string[] = [];
    for (const [label, job] of [
      ["a1", a1],
      ["a2", a2],
    ] as const) {
      bench.service.jobs.watch(job.id, (event) => {
        const type = event?.type;
        if (type !== "gradient_step") order.push(`${label} ${type === "training_started" ? "start" : "end"}`);
      });
    }
    const progress = async (job: JobRecord) => (await bench.service.jobs.owned(job.id, "me")).progress;
    for (const job of [a1, b1]) await expect.poll(() => progress(job)).toBe(0.5);
    letGo();
    for (const job of [a1, a2, b1]) await ended(bench, job);
    expect(order.slice(-3)).toEqual(["a1 end", "a2 start", "a2 end"]);
    expect(await bench.service.models.steps(a.id, "me")).toHaveLength(3);
  });

  it("cancels a waiting job at once and a running one within a step", async () => {
    const warnings: string[] = [];
    const log = createLog({ level: "warn", format: "text", write: (line) => warnings.push(line) });
    const bench = await start({ trainer: heldTrainer().trainer, maxParallelJobs: 1, log });
    const model = await newModel(bench);
    const running = await submit(bench, model.id);
    const waiting = await submit(bench, model.id);
    expect((await bench.service.jobs.cancel(waiting.id, "me")).status).toBe("CANCELLED");
    const told = () => bench.service.jobs.events(running.id, null, 10);
    await expect.poll(async () => (await told()).at(-1)?.type).toBe("gradient_step");
    await bench.service.jobs.cancel(running.id, "me");
    const events = await ended(bench, running);
    expect(events.map(({ type }) => type)).toEqual(["training_started", "gradient_step", "training_failed"]);
    expect(events.at(-1)!.data).toEqual({ error_message: "cancelled" });
    expect((await bench.service.jobs.owned(running.id, "me")).status).toBe("CANCELLED");
    expect((await bench.service.jobs.cancel(running.id, "me")).status).toBe("CANCELLED");
    expect((await bench.service.models.step(model.id, "me", "latest")).step).toBe(0);
    await expect(bench.service.jobs.cancel(running.id, "you")).rejects.toThrow(/no training job/);
    expect(warnings).toEqual([]);
  });

  it("answers a repeated idempotency key with the first job, and refuses it with another body", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const first = await submit(bench, model.id, undefined, { key: "k" });
    expect((await submit(bench, model.id, undefined, { key: "k" })).id).toBe(first.id);
    await expect(submit(bench, model.id, [], { key: "k" })).rejects.toThrow(/another body/);
    await ended(bench, first);
    await expect.poll(() => jobFolders(bench)).toEqual([]);
    expect(await bench.service.jobs.list("me", null, null, null, 10)).toHaveLength(1);
  });

  it("enforces the quotas", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ maxOpenJobs: 1, maxStepsPerModel: 2, trainer });
    const model = await newModel(bench);
    const first = await submit(bench, model.id);
    await expect(submit(bench, model.id)).rejects.toThrow(/At most 1 jobs/);
    letGo();
    await ended(bench, first);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    await expect
      .poll(async () => (await bench.service.models.steps(model.id, "me")).map(({ step }) => step))
      .toEqual([2, 3]);
  });

  it("writes the curves once, as JSON lines and for TensorBoard", async () => {
    const bench = await start();
    const model = await newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, model.id));
    const folder = join(bench.folder, "training", "models", model.id, "curves");
    const lines = () =>
      readFileSync(join(folder, "metrics.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { step: number; gradient_step: number });
    await expect.poll(() => existsSync(join(folder, "events.out.tfevents.step-2"))).toBe(true);
    await expect
      .poll(() => lines().map(({ step, gradient_step }) => [step, gradient_step]))
      .toEqual([
        [1, 1],
        [1, 2],
        [2, 3],
        [2, 4],
      ]);
  });

  it("scales the learning rate by how far the spread of rewards has shrunk since step 0", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const config = { scaleLearningRateByRewardStdDev: true };
    const rates: unknown[] = [];
    for (const reward of [1, 0.8, 0.9, 0.6]) {
      const groups = [scored(["a1 <e>", reward], ["a2 <e>", 0])];
      const events = await ended(bench, await submit(bench, model.id, groups, { config }));
      rates.push(events.find((event) => event?.type === "gradient_step")!.data.learning_rate);
      // a job without rewards to compare says nothing about them
      if (reward === 0.6) await ended(bench, await submit(bench, model.id, [], { config }));
    }
    expect(rates[0]).toBe(5e-6);
    expect(rates[3]).toBeCloseTo(5e-6 * 0.666666667, 13);
    expect((await bench.service.models.step(model.id, "me", "latest")).metrics).toEqual({ "train/exception_rate": 0 });
  });

  it("remembers the reward spread of steps that were deleted or whose metrics were overwritten", async () => {
    const bench = await start({ maxStepsPerModel: 1 });
    const model = await newModel(bench);
    const config = { scaleLearningRateByRewardStdDev: true };
    let rate: unknown;
    for (const reward of [1, 0.8, 0.9, 0.6]) {
      const groups = [scored(["a1 <e>", reward], ["a2 <e>", 0])];
      const events = await ended(bench, await submit(bench, model.id, groups, { config }));
      rate = events.find((event) => event?.type === "gradient_step")!.data.learning_rate;
      const log = new GroupLog();
      for (const value of [100, 0]) log.addTrajectory({ reward: value, metrics: {} });
      log.addGroup({ exceptions: 0, metrics: {} });
      await bench.service.models.log(model.id, "me", "train", log);
    }
    expect(rate).toBeCloseTo(5e-6 * 0.666666667, 13);
  });

  it("measures the reward spread of a fork from its first step", async () => {
    const bench = await start();
    const source = await newModel(bench);
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, source.id));
    const fork = await bench.service.models.create({
      ...{ owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null, returnExisting: false },
      from: { modelId: source.id, step: 2, owner: "me" },
    });
    const config = { scaleLearningRateByRewardStdDev: true };
    const rates: unknown[] = [];
    for (const reward of [1, 0.8]) {
      const groups = [scored(["a1 <e>", reward], ["a2 <e>", 0])];
      const events = await ended(bench, await submit(bench, fork.id, groups, { config }));
      rates.push(events.find((event) => event?.type === "gradient_step")!.data.learning_rate);
    }
    expect(rates).toEqual([5e-6, expect.closeTo(5e-6 * 0.8, 13)]);
  });

  describe("the reference of the KL penalty", () => {
    const config = (fields: Partial<RlConfig>) => ({ ...fields, loss: { ...RL_DEFAULTS.loss, klPenaltyCoef: 0.1 } });

    /** A bench whose trainer notes the references, a model with steps 0 to 2, and a fork of its step 2. */
    async function forked() {
      const trainer = fakeTrainer();
      const references: (string | null)[] = [];
      const noting = trainingBy(trainer, (task, onStep, signal) => {
        if (task.objective.kind === "policy") references.push(task.objective.reference);
        return trainer.train(task, onStep, signal);
      });
      const bench = await start({ trainer: noting });
      const source = await newModel(bench);
      for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, source.id));
      const fork = await bench.service.models.create({
        ...{ owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null, returnExisting: false },
        from: { modelId: source.id, step: 2, owner: "me" },
      });
      return { bench, source, fork, references };
    }

    it("falls back to the next existing step when a step was deleted or is older than the fork", async () => {
      const { bench, source, fork, references } = await forked();
      await ended(bench, await submit(bench, fork.id, undefined, { config: config({ klPenaltyStepLag: 1 }) }));
      await ended(bench, await submit(bench, fork.id, undefined, { config: config({ klPenaltyStepLag: 1 }) }));
      // step 0 is the base model, in a fork too
      await ended(bench, await submit(bench, fork.id, undefined, { config: config({ klPenaltyStepLag: 4 }) }));
      await bench.service.models.deleteSteps(source.id, "me", [1]);
      await ended(bench, await submit(bench, source.id, undefined, { config: config({ klPenaltyStepLag: 1 }) }));
      const folders = [stepFolder(bench, fork.id, 2), stepFolder(bench, fork.id, 2), "base"];
      expect(references.slice(2)).toEqual([...folders, stepFolder(bench, source.id, 2)]);
    });

    it("is rejected at submission when no earlier job can make it", async () => {
      const { bench, source, fork } = await forked();
      const submitted = (id: string, step: number) =>
        submit(bench, id, undefined, { config: config({ klPenaltyReferenceStep: step }) });
      for (const [id, step] of [
        [fork.id, 1],
        [source.id, 3],
      ] as const) {
        await expect(submitted(id, step)).rejects.toMatchObject({ code: "no_kl_reference" });
      }
      await expect.poll(() => jobFolders(bench)).toEqual([]);
      const before = await submit(bench, source.id);
      const after = await submitted(source.id, 3);
      await ended(bench, before);
      expect((await ended(bench, after)).at(-1)!.type).toBe("training_ended");
    });
  });
});
