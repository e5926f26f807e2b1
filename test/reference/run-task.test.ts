// Runs whole tasks on a small model: what a task writes, and that it ends with a reason when numbers are not finite.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { BatchSequence, Objective, StepMetrics, TrainerTask } from "../../src/training/contract.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { fixtureFolder } from "./runner-driver.ts";

const base = fixtureFolder("llama");
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "task-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const sequence = (first: number, advantage: number): BatchSequence => ({
  ids: Array.from({ length: 24 }, (_, i) => first + i),
  mask: Array.from({ length: 24 }, (_, i) => (i < 10 ? 0 : 1)),
  oldLogprobs: new Array(24).fill(-6),
  ...{ advantage, weight: 1, group: 0 },
});

async function run(fields: { learningRates: number[]; tau?: number; weightDecay?: number; kind?: Objective["kind"] }) {
  const batch = fields.learningRates.map((_, i) => JSON.stringify(sequence(10 + i, i % 2 === 0 ? 1 : -1)));
  writeFileSync(join(folder, "batch.jsonl"), batch.join("\n"));
  const loss = { ...RL_DEFAULTS.loss, tau: fields.tau ?? null };
  const task: TrainerTask = {
    ...{ baseModel: base, weights: "float32", positionsPerBlock: 16, adapter: base, optimizerState: null },
    batch: join(folder, "batch.jsonl"),
    steps: fields.learningRates.map((learningRate, i) => ({ from: i, to: i + 1, learningRate })),
    objective:
      fields.kind === "cross_entropy"
        ? { kind: "cross_entropy" }
        : { kind: "policy", loss, precalculateLogprobs: false, reference: null },
    optimizer: { ...RL_DEFAULTS.optimizer, ...(fields.weightDecay && { weightDecay: fields.weightDecay }) },
    output: join(folder, "step"),
    tokenNumbers: null,
    ...{ threads: 1, activationBytes: 1e9 },
  };
  const steps: StepMetrics[] = [];
  let model: TrainableModel | null = null;
  try {
    const result = await runTask(task, {
      onStep: (metrics) => steps.push(metrics),
      between: async () => {},
      async modelFor({ threads }, rank) {
        const options = { folder: base, weights: "float32" as const, rank, threads, positionsPerBlock: null };
        model = await TrainableModel.create(options);
        return model;
      },
    });
    return { result, steps };
  } finally {
    await (model as TrainableModel | null)?.close();
  }
}

describe("a task", () => {
  it("writes a step and counts the tokens of its passes", async () => {
    const { result, steps } = await run({ learningRates: [1e-4, 1e-4] });
    expect(steps).toHaveLength(2);
    for (const metrics of steps) {
      expect(Object.entries(metrics).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
    }
    expect(result).toMatchObject({ tokens: 48 });
    expect(loadPeft(join(folder, "step"), readModelConfig(base)).rank).toBe(loadPeft(base, readModelConfig(base)).rank);
  });

  it.each([
    [
      "weights too large for the model to compute with",
      [1e30],
      /after the last gradient step.*learning rate \(1e\+30\)/,
    ],
    ["weights that are no numbers", [1e300], /after the last gradient step.*learning rate \(1e\+300\)/],
    ["a step that follows such weights", [1e30, 1e-5], /in gradient step 2; the learning rate \(1e\+30\)/],
  ])("ends without a step: %s", async (_what, learningRates, message) => {
    await expect(run({ learningRates })).rejects.toThrow(message);
    await expect(run({ learningRates, kind: "cross_entropy" })).rejects.toThrow(message);
    expect(existsSync(join(folder, "step"))).toBe(false);
  });

  it("names a weight decay that is far too large", async () => {
    const failed = run({ learningRates: [1e-5], weightDecay: 1e300 });
    await expect(failed).rejects.toThrow(/the learning rate \(0\.00001\) or weight_decay \(1e\+300\) may be too large/);
  });

  it("does not blame the learning rate before the first step", async () => {
    const failed = run({ learningRates: [1e-5], tau: 1e308 });
    await expect(failed).rejects.toThrow(/^the loss .* in gradient step 1; alt_k2_tau \(1e\+308\) may be too large$/);
  });
});
