import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import {
  benchesOfTest,
  beside,
  ended,
  newModel,
  stepFolder,
  submit,
  type TrainingBench,
} from "../../../test/support/training-service.ts";

const HOUR_MS = 3_600_000;
const start = benchesOfTest();
afterEach(() => {
  vi.useRealTimers();
});

/** A model with the steps 0 to 3. */
async function trained(bench: TrainingBench): Promise<string> {
  const { id } = await newModel(bench);
  for (let i = 0; i < 3; i++) await ended(bench, await submit(bench, id));
  return id;
}
function passes(ms: number): void {
  const now = Date.now() + ms;
  vi.useFakeTimers({ toFake: ["Date"], now });
}
const waiting = (bench: TrainingBench) =>
  beside(bench, async ({ removedStepTable }) => (await removedStepTable.all()).map(({ step }) => step));

it("keeps the files of a removed step for the grace time, also over a restart, and serves it no more", async () => {
  const folder = mkdtempSync(join(tmpdir(), "grace-"));
  let bench = await start({ folder, stepGraceMs: HOUR_MS });
  const id = await trained(bench);
  const files = stepFolder(bench, id, 1);
  await (await bench.service.policies.acquire("agent@1", "me"))!.release();
  expect(await bench.service.models.deleteSteps(id, "me", [1])).toMatchObject({ deletedCount: 1 });
  expect(await bench.service.policies.acquire("agent@1", "me")).toBeNull();
  expect(existsSync(files)).toBe(true);
  passes(HOUR_MS - 10_000);
  await bench.close();
  bench = await start({ folder, stepGraceMs: HOUR_MS });
  expect([existsSync(files), await waiting(bench)]).toEqual([true, [1]]);
  passes(20_000);
  expect(await bench.service.models.deleteSteps(id, "me", [2])).toMatchObject({ deletedCount: 1 });
  expect([existsSync(files), await waiting(bench)]).toEqual([false, [2]]);
  expect(existsSync(stepFolder(bench, id, 2))).toBe(true);
});

it("keeps the files of a deleted model for the grace time, and counts them until they are gone", async () => {
  const bench = await start({ stepGraceMs: HOUR_MS });
  const id = await trained(bench);
  const files = stepFolder(bench, id, 3);
  const { steps } = (await bench.service.account("me")).use;
  expect(await bench.service.models.delete(id, "me")).toEqual({ deletedCheckpoints: 4 });
  expect(existsSync(files)).toBe(true);
  const { use } = await bench.service.account("me");
  // four steps had metrics of at least two characters
  expect(use.deleted).toBeGreaterThan(steps - 4096);
  expect(use).toMatchObject({ steps: 0, records: 0, results: 0 });
  passes(HOUR_MS + 1000);
  const other = await newModel(bench, "other");
  await bench.service.models.delete(other.id, "me");
  expect(readdirSync(join(bench.folder, "training", "models"))).toEqual([other.id]);
  expect(await waiting(bench)).toEqual([null, 0]);
  expect((await bench.service.account("me")).use.deleted).toBeLessThan(steps);
});

it("lets a request finish on a step that another server removed, and frees its slot then", async () => {
  const bench = await start();
  const id = await trained(bench);
  const files = stepFolder(bench, id, 1);
  const lease = (await bench.service.policies.acquire("agent@1", "me"))!;
  await beside(bench, async ({ modelTable, removedStepTable }) => {
    const files = (await modelTable.deleteStep(id, 1))!;
    const removed = { modelId: id, step: 1, folder: join(id, files.folder), removedAt: Date.now() };
    await removedStepTable.insert({ ...removed, owner: "me", bytes: files.bytes });
  });
  // looks for files to delete
  await bench.service.models.deleteSteps(id, "me", [2]);
  expect([existsSync(files), await waiting(bench)]).toEqual([true, [1]]);
  expect([...bench.engine.versions]).toContain(lease.adapter);
  lease.release();
  await bench.service.models.deleteSteps(id, "me", [0]);
  expect([existsSync(files), await waiting(bench)]).toEqual([false, []]);
  await expect.poll(() => [...bench.engine.versions]).not.toContain(lease.adapter);
});

it("keeps a step that a job on another server trains from", async () => {
  const bench = await start();
  const id = await trained(bench);
  await beside(bench, async ({ jobTable }, store) => {
    const job = { id: "j", modelId: id, owner: "me", kind: "rl" as const, config: "{}" };
    await jobTable.insert({ ...job, idempotencyKey: null, requestHash: "", openBytes: 0, recordBytes: 0 });
    await store.run("UPDATE jobs SET status = 'RUNNING', from_step = 1 WHERE id = 'j'");
    expect(await bench.service.models.deleteSteps(id, "me", [1, 2])).toMatchObject({ keptSteps: [1] });
    await store.run("DELETE FROM jobs WHERE id = 'j'");
  });
  expect(await bench.service.models.deleteSteps(id, "me", [1])).toMatchObject({ keptSteps: [], deletedCount: 1 });
});
