// What the PyTorch trainer says before it trains: its limits. Needs a Python with torch, named by FLYWHEEL_TORCH_PYTHON.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import type { LimitsTask } from "../../src/training/contract.ts";
import { CommandProcess } from "../../src/training/process/command-process.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";
import { needing, TORCH } from "../support/needs.ts";

const PYTHON = process.env.FLYWHEEL_TORCH_PYTHON;
const env = { PYTHONPATH: fileURLToPath(new URL("../../trainer", import.meta.url)), OMP_NUM_THREADS: "1" };
const folder = mkdtempSync(join(tmpdir(), "torch-limits-"));
const trainer = new ProcessTrainer({
  start: () =>
    new CommandProcess({ command: `"${PYTHON}" -m flywheel_trainer`, env, startMs: 120_000, pingMs: 10_000 }),
  ...{ idleMs: 60_000, cancelGraceMs: 10_000 },
});
afterAll(async () => {
  await trainer.close();
  rmSync(folder, { recursive: true });
});

const limits = async (baseModel: string, activationBytes: number) => {
  const task: LimitsTask = {
    baseModel,
    activationBytes,
    weights: "float32",
    positionsPerBlock: 16,
    rank: 8,
    maxSequenceLength: 512,
  };
  return (await trainer.limits(task)).maxTrainedLength;
};

needing(TORCH).describe("the limits of the torch trainer", { timeout: 120_000 }, () => {
  it("are the model's positions, or what fits the memory", async () => {
    expect(await limits(fixtureFolder("llama"), 2 ** 30)).toBe(512);
    const some = await limits(fixtureFolder("llama"), 2 ** 20);
    expect(some).toBeGreaterThan(50);
    expect(some).toBeLessThan(512);
    expect(await limits(fixtureFolder("llama"), 1)).toBe(0);
  });

  it("are a sentence for a model that cannot be trained", async () => {
    const other = join(folder, "gpt2");
    cpSync(fixtureFolder("llama"), other, { recursive: true });
    const config = JSON.parse(readFileSync(join(other, "config.json"), "utf8"));
    writeFileSync(join(other, "config.json"), JSON.stringify({ ...config, model_type: "gpt2" }));
    await expect(limits(other, 2 ** 30)).rejects.toThrow("models of type gpt2 cannot be trained");
  });
});
