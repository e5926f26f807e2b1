import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { lateStore } from "../../test/support/late-store.ts";
import {
  benchesOfTest,
  ended,
  heldTrainer,
  newModel,
  stepFolder,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../test/support/training-service.ts";

const start = benchesOfTest();

it("a policy is found in one read", async () => {
  let reads = 0;
  const count = async (answer?: unknown) => {
    if (answer !== undefined) reads += 1;
  };
  // nothing else may read meanwhile
  const times = { lease: 1e6, renew: 1e6, sweep: 1e6, poll: 1e6 };
  const bench = await start({ times, wrapStore: (store) => lateStore(store, count) });
  await bench.service.models.rollback((await newModel(bench)).id, "me", 0);
  for (const name of ["agent", "agent@1", "wandb-artifact:///team/demo/agent:step1"]) {
    reads = 0;
    const lease = await bench.service.policies.acquire(name, "me");
    expect([name, lease!.step, reads]).toEqual([name, 1, 1]);
    lease!.release();
  }
});

describe("steps and the engine's adapter slots", () => {
  /** A folder with an adapter of its own content, as an operator would name it. */
  const operatorAdapter = async (bench: TrainingBench, name: string): Promise<string> => {
    const step = stepFolder(bench, (await newModel(bench, name)).id, 0);
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
      from: { modelId, step: null, owner: "me" },
    });

  it("makes room for a policy by unloading the least recently used one", async () => {
    const bench = await start({ maxLoras: 2 });
    const model = await newModel(bench);
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

  it("publishes, rolls back and forks even if the operator's adapters use every slot", async () => {
    const bench = await start({ maxLoras: 2 });
    const model = await newModel(bench);
    const held = await bench.slots.hold(await operatorAdapter(bench, "o"));
    await bench.slots.hold(await operatorAdapter(bench, "oo"));
    const events = await ended(bench, await submit(bench, model.id));
    expect(events.at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
    expect((await bench.service.models.rollback(model.id, "me", 0)).step).toBe(2);
    const forked = await fork(bench, model.id);
    expect((await bench.service.models.rollback(forked.id, "me", 2)).step).toBe(3);
    await expect(bench.service.policies.acquire("agent@1", "me")).rejects.toMatchObject({
      code: "no_adapter_slot",
      message: expect.stringContaining("by adapters that the operator loaded"),
    });
    expect(bench.engine.versions.size).toBe(2);
    await bench.slots.drop(held.version);
    const lease = await bench.service.policies.acquire("agent@1", "me");
    expect(bench.engine.versions).toContain(lease!.adapter);
  });

  it("publishes and rolls back even if the engine cannot load adapters", async () => {
    const bench = await start();
    const model = await newModel(bench);
    const load = vi.spyOn(bench.engine, "loadAdapter").mockRejectedValue(new Error("the engine thread ended"));
    expect((await ended(bench, await submit(bench, model.id))).at(-1)!.type).toBe("training_ended");
    expect((await bench.service.models.rollback(model.id, "me", 1)).step).toBe(2);
    load.mockRestore();
    expect((await bench.service.policies.acquire("agent", "me"))!.step).toBe(2);
  });

  it("gives a step's slot to the operator while a job trains from that step", async () => {
    const { trainer, hold, letGo } = heldTrainer();
    const bench = await start({ maxLoras: 1, trainer });
    const model = await newModel(bench);
    letGo();
    await ended(bench, await submit(bench, model.id));
    hold();
    const job = await submit(bench, model.id);
    await expect.poll(() => bench.service.policies.inUse(model.id, 1)).toBe(true);
    const { version } = await bench.slots.hold(await operatorAdapter(bench, "o"));
    expect(bench.engine.versions).toEqual(new Set([version]));
    letGo();
    expect((await ended(bench, job)).at(-1)!.type).toBe("training_ended");
  });

  it("shares the slot of an operator's adapter with the same content", async () => {
    const bench = await start({ maxLoras: 1 });
    const model = await newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const { version } = await bench.slots.hold(stepFolder(bench, model.id, 1));
    const lease = await bench.service.policies.acquire("agent", "me");
    expect(lease!.adapter).toBe(version);
    lease!.release();
    await bench.service.models.rollback(model.id, "me", 0);
    await bench.service.models.deleteSteps(model.id, "me", [1]);
    expect(bench.engine.versions).toEqual(new Set([version]));
  });

  it("neither serves nor trains a model whose rank is larger than the server allows", async () => {
    const folder = mkdtempSync(join(tmpdir(), "training-"));
    try {
      const before = await trainingBench({ folder });
      const model = await newModel(before);
      await ended(before, await submit(before, model.id));
      await before.close();

      const bench = await trainingBench({ folder, maxLoraRank: 1 });
      const refusal = { code: "rank_too_large", message: expect.stringContaining("rank 2, more than") };
      await expect(bench.service.policies.acquire("agent", "me")).rejects.toMatchObject(refusal);
      expect(await bench.service.policies.answers(model)).toBe(false);
      expect(await bench.service.policies.acquire("agent@0", "me")).toMatchObject({ step: 0, adapter: null });
      const events = await ended(bench, await submit(bench, model.id));
      expect(events.map(({ type }) => type)).toEqual(["training_failed"]);
      expect(events[0]!.data.error_message).toContain("--max-lora-rank 1");
      expect((await bench.service.models.steps(model.id, "me")).map(({ step }) => step)).toEqual([0, 1]);
      await bench.close();

      const after = await trainingBench({ folder });
      expect(await after.service.policies.acquire("agent", "me")).toMatchObject({ step: 1 });
      await after.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("lets a request finish on a deleted model, then frees its slot", async () => {
    const bench = await start();
    const model = await newModel(bench);
    await ended(bench, await submit(bench, model.id));
    const lease = await bench.service.policies.acquire("agent", "me");
    await bench.service.models.delete(model.id, "me");
    expect(bench.engine.versions).toEqual(new Set([lease!.adapter]));
    lease!.release();
    await expect.poll(() => bench.engine.versions.size).toBe(0);
  });
});
