import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type BaseModel, BaseModels, limitsOf } from "./base-models.ts";
import type { LimitsTask, Trainer } from "./contract.ts";

it("rejects weights that were replaced after the start", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-base-"));
  cpSync("test/fixtures/llama", folder, { recursive: true });
  const bases = new BaseModels([{ name: "tiny", aliases: [], folder } as unknown as BaseModel]);
  const tiny = bases.get("tiny")!;
  bases.assertUnchanged(tiny);
  const weights = join(folder, "model.safetensors");
  rmSync(weights);
  cpSync("test/fixtures/llama/model.safetensors", weights);
  expect(() => bases.assertUnchanged(tiny)).toThrow(/base model tiny changed since the server started/);
});

it("asks the trainer for its limits once, again after a failure, and stops waiting when told to", async () => {
  const answers = [Promise.reject(new Error("no GPU")), Promise.resolve({ maxTrainedLength: 7 })];
  const trainer = { limits: () => answers.shift() } as unknown as Trainer;
  const limits = limitsOf(trainer, { maxSequenceLength: 64 } as LimitsTask);
  await expect(limits()).rejects.toMatchObject({ code: "trainer_failed", message: expect.stringContaining("no GPU") });
  expect(await Promise.all([limits(), limits()])).toEqual(
    [1, 2].map(() => ({ maxSequenceLength: 64, maxTrainedLength: 7 })),
  );
  expect(await limits()).toMatchObject({ maxTrainedLength: 7 });

  const slow = limitsOf({ limits: () => new Promise(() => {}) } as unknown as Trainer, {} as LimitsTask);
  const stop = new AbortController();
  const waiting = slow(stop.signal);
  stop.abort(new Error("cancelled"));
  await expect(waiting).rejects.toThrow("cancelled");
  await expect(slow(stop.signal)).rejects.toThrow("cancelled");
});
