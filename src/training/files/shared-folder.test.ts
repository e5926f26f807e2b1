import { mkdtempSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { benchesOfTest, ended, newModel, stepFolder, submit } from "../../../test/support/training-service.ts";
import { violations } from "../../../test/training-invariants/violations.ts";
import { becomesVisible } from "./shared-folder.ts";

const start = benchesOfTest();
const later = (ms: number, work: () => void) => new Promise<void>((done) => setTimeout(() => done(work()), ms));

/** A policy whose newest step the engine has not loaded and whose files cannot be seen. */
async function hidden(visibleMs: number) {
  const bench = await start({ visibleMs });
  const { id } = await newModel(bench);
  await ended(bench, await submit(bench, id));
  const folder = stepFolder(bench, id, 1);
  await bench.slots.forget(folder);
  renameSync(folder, `${folder}.hidden`);
  return { bench, id, show: () => renameSync(`${folder}.hidden`, folder) };
}

it("a request for a step waits for files that another server has just written", async () => {
  const { bench, show } = await hidden(20_000);
  const [lease] = await Promise.all([bench.service.policies.acquire("agent", "me"), later(300, show)]);
  expect(lease).toMatchObject({ step: 1, adapter: expect.any(String) });
  lease!.release();
});

it("others are served meanwhile", async () => {
  const { bench, id, show } = await hidden(20_000);
  const waiting = bench.service.policies.acquire("agent", "me");
  const other = await newModel(bench, "other");
  await ended(bench, await submit(bench, other.id));
  const lease = await bench.service.policies.acquire("other", "me");
  expect(lease!.step).toBe(1);
  show();
  expect((await waiting)!.model.id).toBe(id);
});

it("a job waits for the step that it continues", async () => {
  const { bench, id, show } = await hidden(20_000);
  const job = await submit(bench, id);
  await later(300, show);
  expect((await ended(bench, job)).at(-1)).toMatchObject({ type: "training_ended", data: { step: 2 } });
  await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
  expect(await violations({ store: bench.store, folder: join(bench.folder, "training") })).toEqual([]);
});

it("the wait ends with the request, and when it takes too long", async () => {
  const { bench, id } = await hidden(20_000);
  const gone = new AbortController();
  const waiting = bench.service.policies.acquire("agent", "me", () => gone.signal);
  await later(100, () => gone.abort());
  await expect(waiting).rejects.toThrow(/abort/);
  expect(bench.service.policies.inUse(id, 1)).toBe(false);
  const folder = mkdtempSync(join(tmpdir(), "invisible-"));
  expect(await becomesVisible(folder, 200)).toBe(false);
  expect(await becomesVisible(folder, 0)).toBe(false);
});
