// kill -9 at random moments never loses an accepted job, publishes half a step or leaves files behind. FLYWHEEL_TEST_JOBS=1000
// makes a longer queue.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { lockDataDir } from "../../src/store/data-dir.ts";
import { stepDigest } from "../../src/training/files/step-folders.ts";
import { databaseOf, ended, fakeTrainer, LLAMA, newModel, submit, trainingBench } from "../support/training-service.ts";

const KILLS = 20;

/** Runs the server, kills it `ms` after it became ready, and returns the ids of the jobs it accepted. */
async function runAndKill(folder: string, ms: number): Promise<string[]> {
  const entry = new URL("./training-crash-server.mjs", import.meta.url).pathname;
  const database = await databaseOf(folder);
  const args = [entry, folder, LLAMA, ...(database === null ? [] : [database])];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let errors = "";
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      out += chunk;
      if (out.includes("ready")) resolve();
    });
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.on("exit", (code) => reject(new Error(`ended with ${code}: ${errors}`)));
  });
  const gone = new Promise((resolve) => child.on("close", resolve));
  await ready;
  await sleep(ms);
  child.kill("SIGKILL");
  await gone;
  // The last line may be cut off by the kill. That job was accepted too, but its id is unknown.
  return out.split("\n").slice(1, -1);
}

describe("kill -9", () => {
  it(`${KILLS} times: every accepted job ends, steps are complete, no file is orphaned`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "training-crash-"));
    try {
      const accepted: string[] = [];
      // On a busy machine few jobs are accepted before a kill, so it kills more often.
      for (let kills = 0; kills < KILLS || accepted.length <= KILLS / 2; kills++) {
        accepted.push(...(await runAndKill(folder, Math.random() * 250)));
      }

      const bench = await trainingBench({ folder });
      const { jobs, models } = bench.service;
      await expect.poll(() => bench.service.stats()).toEqual({ running: 0, pending: 0 });
      for (const id of accepted) {
        const job = await jobs.owned(id, "me");
        const events = (await jobs.events(id, null, 1000)).map(({ type }) => type);
        if (job.status === "COMPLETED") {
          expect(events).toEqual(["training_started", "gradient_step", "gradient_step", "training_ended"]);
        } else {
          expect(job).toMatchObject({ status: "FAILED", errorMessage: expect.stringContaining("the server stopped") });
          expect(events.at(-1)).toBe("training_failed");
        }
      }
      for (const model of await models.list("me", {}, null, 100)) {
        const made = (await jobs.list("me", model.id, "COMPLETED", null, 10_000)).map(({ toStep }) => toStep);
        const rows = await models.steps(model.id, "me");
        const steps = rows.map(({ step }) => step);
        expect(steps).toEqual([0, ...made.reverse()]);
        expect(new Set(steps).size).toBe(steps.length);
        const entries = readdirSync(join(folder, "training", "models", model.id)).filter((name) => name !== "curves");
        expect(entries.sort()).toEqual(rows.map((row) => row.folder).sort());
        for (const row of rows) {
          expect(await stepDigest(join(folder, "training", "models", model.id, row.folder))).toBe(row.digest);
        }
        const newest = await bench.service.policies.acquire(model.name, "me");
        expect(newest!.step).toBe(steps.at(-1));
      }
      expect(readdirSync(join(folder, "training", "jobs"))).toEqual([]);
      expect(existsSync(join(folder, "training", "orphans"))).toBe(false);
      await bench.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

it("allows one server per data directory", () => {
  const folder = mkdtempSync(join(tmpdir(), "lock-"));
  const unlock = lockDataDir(folder);
  expect(() => lockDataDir(folder)).toThrow(/another server is using/);
  unlock();
  lockDataDir(folder)();
  rmSync(folder, { recursive: true, force: true });
});

const QUEUED = Number(process.env.FLYWHEEL_TEST_JOBS ?? 200);

it(`runs ${QUEUED} queued jobs in order`, async () => {
  const bench = await trainingBench({ trainer: fakeTrainer(0) });
  const model = await newModel(bench);
  const submitted = [];
  for (let i = 0; i < QUEUED; i++) submitted.push(await submit(bench, model.id, i % 100 === 0 ? undefined : []));
  await ended(bench, submitted.at(-1)!);
  expect((await bench.service.jobs.list("me", model.id, "COMPLETED", null, 2000)).map(({ id }) => id)).toEqual(
    submitted.map(({ id }) => id).reverse(),
  );
  expect((await bench.service.models.step(model.id, "me", "latest")).step).toBe(QUEUED);
  await bench.close();
});
