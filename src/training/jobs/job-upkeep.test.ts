import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  beside,
  ended,
  fakeTrainer,
  folderOfStep,
  heldTrainer,
  newModel,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../../test/support/training-service.ts";
import { createLog } from "../../observe/log.ts";
import { LeaseTable } from "../../store/tables/leases.ts";
import { temporaryBeside } from "../../system/files.ts";
import type { Trainer } from "../contract.ts";
import { StepFolders } from "../files/step-folders.ts";

let folder: string;
let bench: TrainingBench;
let lines: string[];
const at = (...path: string[]) => join(folder, "training", ...path);
const warnings = () => lines.filter((line) => line.includes(" warn "));
/** `path`: the folder of a model. */
const weights = (step: number, ...path: string[]) =>
  readFileSync(at(...path, folderOfStep(at(...path), step)!, "adapter_model.safetensors")).toString("hex");
/** Numbers of the steps in the folder of a model. */
const stepsIn = (...path: string[]) =>
  readdirSync(at(...path))
    .filter((name) => name !== "curves")
    .map((name) => Number(/^step-(\d+)/.exec(name)?.[1]))
    .sort();

async function start(trainer: Trainer = fakeTrainer()): Promise<void> {
  lines = [];
  const log = createLog({ level: "info", format: "text", write: (line) => lines.push(line) });
  bench = await trainingBench({ folder, log, trainer });
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "recovery-"));
  await start();
});
afterEach(() => bench.close());

async function trainedModel(): Promise<string> {
  const { id } = await newModel(bench);
  await ended(bench, await submit(bench, id));
  return id;
}
async function restart(between: () => unknown): Promise<void> {
  await bench.close();
  await between();
  await start();
}
/** As if the database were new. */
const loseRows = () =>
  beside({ folder }, async (_tables, store) => {
    for (const table of ["jobs", "models"]) await store.run(`DELETE FROM ${table}`);
  });
/** As if the database were from the time when this was the newest step. */
const loseRowsAfter = (model: string, step: number) =>
  beside({ folder }, async (_tables, store) => {
    await store.run("DELETE FROM jobs WHERE to_step > ?1", step);
    await store.run("DELETE FROM steps WHERE model_id = ?1 AND step > ?2", model, step);
    await store.run("UPDATE models SET next_step = ?2 WHERE id = ?1", model, step + 1);
  });
/** As a dead server does. */
const leaveRunning = (job: string) =>
  beside({ folder }, (_tables, store) => store.run("UPDATE jobs SET status = 'RUNNING' WHERE id = ?1", job));

describe("a start", () => {
  it("moves unknown models aside and logs where", async () => {
    const id = await trainedModel();
    const trained = weights(1, "models", id);
    await restart(loseRows);
    expect(readdirSync(at("models"))).toEqual([]);
    expect(weights(1, "orphans", id)).toBe(trained);
    expect(warnings()).toEqual([expect.stringContaining(`folder=${at("orphans", id)}`)]);

    await restart(() => mkdirSync(at("models", id, "step-7"), { recursive: true }));
    expect(weights(1, "orphans", id)).toBe(trained);
    expect(readdirSync(at("orphans", `${id}-2`))).toEqual(["step-7"]);
    await restart(() => {});
    expect(lines).toEqual([]);
  });

  it("moves aside steps that are newer than the database", async () => {
    const id = await trainedModel();
    for (let i = 0; i < 2; i++) await ended(bench, await submit(bench, id));
    const trained = weights(3, "models", id);
    await restart(() => loseRowsAfter(id, 1));
    expect(warnings()).toHaveLength(2);
    expect(stepsIn("orphans", id)).toEqual([2, 3]);
    await ended(bench, await submit(bench, id));
    expect((await bench.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0, 1, 2]);
    expect(weights(3, "orphans", id)).toBe(trained);
  });

  it("deletes unfinished and deleted files", async () => {
    const id = await trainedModel();
    await bench.service.models.deleteSteps(id, "me", [0]);
    await restart(() => {
      for (const left of [
        [id, ".staging-x"],
        [id, basename(temporaryBeside(".staging-y"))],
        [id, "step-0"],
        [id, "step-0-0123456789ab-2"],
        ["unborn", ".staging-first"],
        ["cut-short", basename(temporaryBeside(".staging-first"))],
        [".removed-y", "step-3"],
      ]) {
        mkdirSync(at("models", ...left), { recursive: true });
        writeFileSync(at("models", ...left, "adapter_model.safetensors"), "");
      }
      mkdirSync(at("jobs", "over"));
    });
    expect(readdirSync(at("models"))).toEqual([id]);
    expect(stepsIn("models", id)).toEqual([1]);
    expect(readdirSync(at("jobs"))).toEqual([]);
    expect([warnings(), existsSync(at("orphans"))]).toEqual([[], false]);
  });

  it("repeats a job that was interrupted between its files and its row", async () => {
    await bench.close();
    await start(heldTrainer().trainer);
    const { id } = await newModel(bench);
    const job = await submit(bench, id);
    await restart(async () => {
      await leaveRunning(job.id);
      for (const name of ["step-1", "step-1-0123456789ab"]) mkdirSync(at("models", id, name));
    });
    expect((await ended(bench, job)).at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
    expect(stepsIn("models", id)).toEqual([0, 1]);
    expect(weights(1, "models", id)).not.toBe("");
    expect([warnings(), existsSync(at("orphans"))]).toEqual([[], false]);
  });

  it.each([
    [4, "training_ended"],
    [5, "training_failed"],
  ])("takes a job that ran at %d crashes up again, unless it seems to cause them: %s", async (attempts, end) => {
    await bench.close();
    await start(heldTrainer().trainer);
    const job = await submit(bench, (await newModel(bench)).id);
    await restart(async () => {
      await leaveRunning(job.id);
      await beside({ folder }, (_tables, store) =>
        store.run("UPDATE jobs SET attempts = ?2 WHERE id = ?1", job.id, attempts),
      );
    });
    expect((await ended(bench, job)).at(-1)!.type).toBe(end);
    const { errorMessage } = await bench.service.jobs.owned(job.id, "me");
    if (attempts === 5) expect(errorMessage).toBe("the server stopped 5 times while this job was running");
  });

  it("puts a job back in the queue on a full disk, using the reserve", async () => {
    await bench.close();
    await start(heldTrainer().trainer);
    const job = await submit(bench, (await newModel(bench)).id);
    const release = vi.spyOn(StepFolders.prototype, "releaseReserve");
    const requeue = vi.spyOn(LeaseTable.prototype, "requeue");
    try {
      await restart(async () => {
        await leaveRunning(job.id);
        expect(existsSync(at("reserve"))).toBe(true);
        requeue.mockImplementationOnce(() => {
          expect(release).not.toHaveBeenCalled();
          throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
        });
      });
      expect(release).toHaveBeenCalledTimes(1);
    } finally {
      vi.restoreAllMocks();
    }
    expect(existsSync(at("reserve"))).toBe(true);
    expect((await ended(bench, job)).at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
  });
});
