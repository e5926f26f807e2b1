// Passes and one optimizer step against a gradient step of a job over the same tokens.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { BatchSequence, Objective, PassTask, TokenMatrix } from "../../src/training/contract.ts";
import type { NamedLoss } from "../../src/training/gradient/algorithms.ts";
import { parametersOf } from "../../src/training/onnx/pass/lora-sites.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runPass, runUpdate } from "../../src/training/onnx/run-pass.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { fixtureFolder } from "./runner-driver.ts";

const base = fixtureFolder("llama");
const adapter = loadPeft(base, readModelConfig(base));
// A first step of Adam divides each gradient by its own size, so where a gradient is almost 0 its rounding would decide.
// A larger epsilon keeps differences as small as those of the gradients.
const optimizer = { ...RL_DEFAULTS.optimizer, learningRate: 1e-3, epsilon: 1e-4 };
const common = {
  ...{ baseModel: base, weights: "float32" as const, positionsPerBlock: 16, adapter: base },
  ...{ threads: 1, activationBytes: 1e9 },
};
let model: TrainableModel;
const hooks = { onStep() {}, between: async () => {}, modelFor: async () => model };
let folder: string;
beforeAll(async () => {
  const { rank } = adapter;
  model = await TrainableModel.create({ folder: base, weights: "float32", rank, threads: 1, positionsPerBlock: null });
});
afterAll(() => model.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pass-"));
  return () => rmSync(folder, { recursive: true });
});

const LENGTH = 24;
const PROMPT = 10;
const sequence = (first: number, advantage: number): BatchSequence => ({
  ids: Array.from({ length: LENGTH }, (_, i) => first + i),
  mask: Array.from({ length: LENGTH }, (_, i) => (i < PROMPT ? 0 : 1)),
  oldLogprobs: new Array(LENGTH).fill(-6),
  ...{ advantage, weight: 1, group: -1 },
});
const sequences = [sequence(10, 1), sequence(40, -2)];

/** The same sequence as clients of runs send it: values at the position that predicts, not at the token. */
function matrix({ ids, mask, advantage }: BatchSequence, index: number): TokenMatrix {
  const trained = Array.from({ length: LENGTH }, (_, p): number => mask[p + 1] ?? 0);
  return {
    ...{ id: `m${index}`, group: -1, ids, width: 1, policyVersions: trained.map((bit) => (bit === 1 ? 3 : -1)) },
    targets: [...ids.slice(1), 0],
    weights: trained,
    advantages: trained.map((bit) => bit * advantage),
    behaviorLogprobs: trained.map((bit) => bit * -6),
  };
}

async function pass(name: string, matrices: readonly TokenMatrix[], loss: NamedLoss, fields: Partial<PassTask> = {}) {
  const batch = join(folder, `${name}.jsonl`);
  writeFileSync(batch, matrices.map((each) => JSON.stringify(each)).join("\n"));
  return runPass({ ...common, batch, loss, gradients: join(folder, name), logprobs: null, ...fields }, hooks);
}

async function job(objective: Objective) {
  const batch = join(folder, "job.jsonl");
  writeFileSync(batch, sequences.map((each) => JSON.stringify(each)).join("\n"));
  const steps = [{ from: 0, to: 2, learningRate: optimizer.learningRate }];
  let loss = Number.NaN;
  const onStep = (metrics: Record<string, number>) => {
    loss = metrics.loss!;
  };
  const output = join(folder, "step");
  const task = { ...common, batch, steps, objective, optimizer, optimizerState: null, output, tokenNumbers: null };
  await runTask(task, { ...hooks, onStep });
  return loss;
}

/** The largest difference between the parameters of two steps. */
function distance(one: string, other: string): number {
  const [a, b] = [one, other].map((name) => parametersOf(loadPeft(join(folder, name), readModelConfig(base))));
  let most = 0;
  for (const [name, values] of a!) {
    for (const [i, value] of values.entries()) most = Math.max(most, Math.abs(value - b!.get(name)![i]!));
  }
  return most;
}

const policy: Objective = { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null };

describe("two passes and one update", () => {
  it.each([
    ["cispo", { name: "cispo", clipLow: 0, clipHigh: 5 }, policy],
    // far from its clip, PPO's loss is the plain importance ratio times the advantage
    [
      "importance_sampling",
      { name: "importance_sampling" },
      { ...policy, loss: { ...RL_DEFAULTS.loss, algorithm: "ppo", epsilon: 1e9 } },
    ],
    ["cross_entropy", { name: "cross_entropy" }, { kind: "cross_entropy" }],
  ] as [string, NamedLoss, Objective][])(
    "with %s give the step of one job over both batches",
    async (_, loss, objective) => {
      const parts = [];
      for (const [i, each] of sequences.entries()) parts.push(await pass(`g${i}`, [matrix(each, i)], loss));
      const active = LENGTH - PROMPT;
      for (const part of parts) expect(part).toMatchObject({ activePositions: active, rows: LENGTH });
      const gradients = [join(folder, "g0"), join(folder, "g1")];
      const output = join(folder, "updated");
      const update = { ...common, gradients, optimizerState: null, optimizer, output };
      const { gradNorm } = await runUpdate(update);
      expect(gradNorm).toBeGreaterThan(0);
      const expected = await job(objective);
      expect((parts[0]!.loss + parts[1]!.loss) / (2 * active)).toBeCloseTo(expected, 5);
      expect(distance("updated", "step")).toBeLessThan(1e-7);
    },
  );
});

describe("a pass", () => {
  const loss: NamedLoss = { name: "cross_entropy" };

  it("reads several targets per position, and counts a position once", async () => {
    const { ids } = sequences[0]!;
    const two: TokenMatrix = {
      ...matrix(sequences[0]!, 0),
      ...{ width: 2, advantages: null, behaviorLogprobs: null, policyVersions: null },
      targets: ids.flatMap((_, p) => [ids[p + 1] ?? 0, 7]),
      weights: ids.flatMap((_, p) => (p === 4 ? [0.75, 0.25] : [0, 0])),
    };
    const file = join(folder, "logprobs");
    const both = await pass("both", [two], loss, { logprobs: file, gradients: null });
    expect(both).toMatchObject({ activePositions: 1, byPolicyVersion: null });
    const bytes = readFileSync(file);
    const logprobs = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    expect(logprobs).toHaveLength(2 * LENGTH);
    expect(both.loss).toBeCloseTo(-(0.75 * logprobs[8]! + 0.25 * logprobs[9]!), 5);
    const second = matrix(sequences[0]!, 0);
    const sevens = { ...second, targets: ids.map(() => 7), weights: ids.map((_, p) => (p === 4 ? 1 : 0)) };
    expect((await pass("sevens", [sevens], loss)).loss).toBeCloseTo(-logprobs[9]!, 5);
  });

  it("counts positions by the version of the policy that sampled them", async () => {
    const [one, other] = sequences.map(matrix);
    const { byPolicyVersion } = await pass(
      "versions",
      [one!, { ...other!, policyVersions: one!.ids.map(() => 1) }],
      loss,
    );
    expect(byPolicyVersion).toEqual([
      { version: 1, positions: 14 },
      { version: 3, positions: 14 },
    ]);
  });

  it("fails instead of keeping gradients that are not finite", async () => {
    const wild = matrix(sequences[0]!, 0);
    await expect(pass("wild", [{ ...wild, weights: wild.ids.map(() => 1e300) }], loss)).rejects.toThrow("not finite");
  });
});
