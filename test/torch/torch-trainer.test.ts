// The PyTorch trainer beside the embedded one: the same loss, the same numbers on every family, the same steps. Needs a
// Python with torch and transformers, named by FLYWHEEL_TORCH_PYTHON.

import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { SafetensorsFile } from "../../src/model/checkpoint/safetensors.ts";
import { type LossConfig, RL_DEFAULTS } from "../../src/training/config.ts";
import type { BatchSequence, Objective, StepMetrics, TrainerTask } from "../../src/training/contract.ts";
import { type LossInputs, policyLoss } from "../../src/training/gradient/loss.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { CommandProcess } from "../../src/training/process/command-process.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";

const PYTHON = process.env.FLYWHEEL_TORCH_PYTHON;
const PACKAGE = fileURLToPath(new URL("../../trainer", import.meta.url));
type Family = Parameters<typeof fixtureFolder>[0];
const FAMILIES: readonly Family[] = ["llama", "llama3", "qwen2", "qwen3", "mistral", "gemma3"];
if (!PYTHON) console.log("torch trainer tests skipped: FLYWHEEL_TORCH_PYTHON names no Python with torch");

const folder = mkdtempSync(join(tmpdir(), "torch-"));
const trainers: ProcessTrainer[] = [];
afterAll(async () => {
  await Promise.all(trainers.map((trainer) => trainer.close()));
  rmSync(folder, { recursive: true });
});

const env = { PYTHONPATH: PACKAGE, OMP_NUM_THREADS: "1", HF_HUB_OFFLINE: "1", TRANSFORMERS_VERBOSITY: "error" };

async function python(...args: string[]): Promise<string> {
  const options = { env: { ...process.env, ...env }, maxBuffer: 2 ** 28 };
  return (await promisify(execFile)(PYTHON!, args, options)).stdout;
}

function torchTrainer(ranks = 1): ProcessTrainer {
  const launch = ranks === 1 ? "" : `-m torch.distributed.run --standalone --nproc-per-node=${ranks}`;
  const command = `"${PYTHON}" ${launch} -m flywheel_trainer`;
  const onOutput = (text: string) => process.stderr.write(text);
  const start = () => new CommandProcess({ command, env, startMs: 120_000, pingMs: 10_000, onOutput });
  const trainer = new ProcessTrainer({ start, idleMs: 60_000, cancelGraceMs: 10_000, stallMs: 120_000 });
  trainers.push(trainer);
  return trainer;
}

/** The checkpoint alone: beside an adapter, transformers would load that too. */
function checkpoint(family: Family): string {
  const target = join(folder, family);
  mkdirSync(target, { recursive: true });
  for (const file of ["config.json", "model.safetensors"]) {
    copyFileSync(join(fixtureFolder(family), file), join(target, file));
  }
  return target;
}

describe.skipIf(!PYTHON)("the torch trainer", { timeout: 300_000 }, () => {
  it("has the loss of the embedded trainer, for 3,000 random configurations", async () => {
    const cases = fc.sample(lossCase(), { numRuns: 3000, seed: 7 });
    const path = join(folder, "losses.jsonl");
    writeFileSync(path, cases.map((one) => JSON.stringify(one)).join("\n"));
    const lines = (await python(join(PACKAGE, "tests/loss_lines.py"), path)).trimEnd().split("\n");
    expect(lines).toHaveLength(cases.length);
    for (const [i, line] of lines.entries()) {
      const found = JSON.parse(line) as { loss: number; gradient: number[]; ratio: number[] };
      const wanted = policyLoss(lossInputs(cases[i]!), cases[i]!.config);
      const pairs = [[found.loss, wanted.loss], ...found.gradient.map((value, t) => [value, wanted.gradient[t]!])];
      const largest = Math.max(...pairs.map(([, want]) => Math.abs(want!)));
      const off = Math.max(...pairs.map(([value, want]) => Math.abs(value! - want!)));
      expect(off, JSON.stringify(cases[i])).toBeLessThanOrEqual(1e-9 * Math.max(1, largest));
    }
  });

  it.each(FAMILIES)("agrees with the references of %s: log-probabilities, gradients, one step", async (family) => {
    const script = join(PACKAGE, "tests/fixtures.py");
    const found = JSON.parse(await python(script, checkpoint(family), fixtureFolder(family))) as Record<string, number>;
    const bounds = { base: 1e-4, logprobs: 1e-5, gradient: 1e-3, after: 1e-5 };
    for (const [name, off] of Object.entries(found)) {
      expect(off, name).toBeLessThanOrEqual(bounds[name.split(".")[0] as keyof typeof bounds]);
    }
    expect(Object.keys(found).length).toBeGreaterThanOrEqual(7);
  });

  it.each(["qwen3", "gemma3"] as const)(
    "takes the steps of the embedded trainer, and either continues the other (%s)",
    async (family) => {
      const torch = torchTrainer();
      for (const objective of OBJECTIVES) {
        const first = { family, objective, steps: 3 };
        const [onnx, other] = [await embedded(first), await run(torch, first)];
        expectSameSteps(other.steps, onnx.steps);
        expectSameAdapters(other.output, onnx.output, 1e-5);
        const crossed = await run(torch, { ...first, from: onnx.output, steps: 2 });
        const back = await embedded({ ...first, from: other.output, steps: 2 });
        expectSameSteps(crossed.steps, back.steps);
        expectSameAdapters(crossed.output, back.output, 2e-5);
      }
    },
  );

  it("gives shared prompts the numbers of separate ones", async () => {
    const torch = torchTrainer();
    const plain = { family: "llama", objective: OBJECTIVES[0]!, steps: 3 } as const;
    const [shared, separate] = [await run(torch, plain), await run(torch, { ...plain, shared: false })];
    expectSameSteps(shared.steps, separate.steps);
    expectSameAdapters(shared.output, separate.output, 1e-5);
    expect(shared.tokens).toBeLessThan(separate.tokens);
  });

  it("gives two ranks the numbers of one", async () => {
    const plain = { family: "llama", objective: OBJECTIVES[1]!, steps: 3 } as const;
    const [one, two] = [await run(torchTrainer(), plain), await run(torchTrainer(2), plain)];
    expectSameSteps(two.steps, one.steps, 1e-6);
    expectSameAdapters(two.output, one.output, 1e-6);
    expect(two.tokens).toBe(one.tokens);
  });

  it("computes layers again when memory asks for it, and refuses what does not fit", async () => {
    const torch = torchTrainer();
    const plain = { family: "llama", objective: OBJECTIVES[0]!, steps: 2 } as const;
    const [kept, again] = [await run(torch, plain), await run(torch, { ...plain, activationBytes: 300_000 })];
    expectSameAdapters(again.output, kept.output, 1e-5);
    await expect(run(torch, { ...plain, activationBytes: 1000 })).rejects.toThrow(
      "tokens do not fit the memory allowed for training",
    );
  });

  it("ends a task whose numbers are not finite with the sentence of the embedded trainer", async () => {
    const task = { family: "llama", objective: OBJECTIVES[0]!, steps: 2, learningRate: 1e30 } as const;
    const [torch, onnx] = [run(torchTrainer(), task), embedded(task)];
    const message = (await onnx.catch((error: Error) => error)) as Error;
    expect(message.message).toContain("not finite");
    await expect(torch).rejects.toThrow(message.message.replace("1e+30", "1e+30"));
  });
});

interface Wanted {
  family: Family;
  objective: Objective;
  steps: number;
  /** Step to continue. */
  from?: string;
  shared?: boolean;
  activationBytes?: number;
  learningRate?: number;
}

const OBJECTIVES: readonly Objective[] = [
  { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null },
  {
    kind: "policy",
    loss: {
      ...RL_DEFAULTS.loss,
      ...{ algorithm: "ppo", importanceSamplingLevel: "geometric_average", tau: 0.1, klPenaltyCoef: 0.1 },
      truncatedImportanceSampling: 2,
    },
    precalculateLogprobs: true,
    reference: "base",
  },
  { kind: "cross_entropy" },
];

let made = 0;
function taskOf(wanted: Wanted): TrainerTask {
  const home = join(folder, `task-${made++}`);
  mkdirSync(home);
  // two groups of three tries with a common prompt, and one alone
  const sequences = Array.from({ length: 7 }, (_, i): BatchSequence => {
    const group = i === 6 ? -1 : Math.floor(i / 3);
    const ids = Array.from(
      { length: 30 + i },
      (_, p) => 3 + ((p < 16 ? p * 7 + (group + 1) * 11 : p * 13 + i * 29) % 250),
    );
    return {
      ids,
      mask: ids.map((_, p) => (p < 16 || p % 5 === 0 ? 0 : 1)),
      oldLogprobs: ids.map((_, p) => (p % 7 === 0 ? null : -4 - ((p * i) % 5) / 3)),
      ...{ advantage: i % 2 === 0 ? 0.7 : -1.1, weight: 1 + i / 10, group: wanted.shared === false ? -1 : group },
    };
  });
  const batch = join(home, "batch.jsonl");
  writeFileSync(batch, sequences.map((sequence) => JSON.stringify(sequence)).join("\n"));
  const fixture = fixtureFolder(wanted.family);
  return {
    ...{ baseModel: checkpoint(wanted.family), weights: "float32", positionsPerBlock: 16, batch },
    adapter: wanted.from ?? fixture,
    optimizerState: wanted.from === undefined ? null : join(wanted.from, "optimizer.safetensors"),
    steps: Array.from({ length: wanted.steps }, () => ({ from: 0, to: 7, learningRate: wanted.learningRate ?? 1e-3 })),
    ...{ objective: wanted.objective, optimizer: RL_DEFAULTS.optimizer, output: join(home, "step") },
    ...{ threads: 1, activationBytes: wanted.activationBytes ?? 1e9 },
  };
}

async function run(trainer: ProcessTrainer, wanted: Wanted) {
  const task = taskOf(wanted);
  const steps: StepMetrics[] = [];
  const { tokens } = await trainer.train(task, (metrics) => steps.push(metrics), new AbortController().signal);
  return { steps, tokens, output: task.output };
}

async function embedded(wanted: Wanted) {
  const task = taskOf(wanted);
  const steps: StepMetrics[] = [];
  let model: TrainableModel | null = null;
  try {
    const { tokens } = await runTask(task, {
      onStep: (metrics) => steps.push(metrics),
      between: async () => {},
      async modelFor({ baseModel, threads }, rank) {
        const options = { folder: baseModel, weights: "float32" as const, rank, threads, positionsPerBlock: null };
        model = await TrainableModel.create(options);
        return model;
      },
    });
    return { steps, tokens, output: task.output };
  } finally {
    await (model as TrainableModel | null)?.close();
  }
}

function expectSameSteps(found: readonly StepMetrics[], wanted: readonly StepMetrics[], bound = 1e-4): void {
  expect(found.map((metrics) => Object.keys(metrics).sort())).toEqual(wanted.map((m) => Object.keys(m).sort()));
  for (const [i, metrics] of found.entries()) {
    for (const [name, value] of Object.entries(metrics)) {
      const want = wanted[i]![name]!;
      expect(Math.abs(value - want), `step ${i} ${name}: ${value}, ${want}`).toBeLessThanOrEqual(
        bound * Math.max(1, Math.abs(want)),
      );
    }
  }
}

function expectSameAdapters(found: string, wanted: string, bound: number): void {
  for (const name of ["adapter_model.safetensors", "optimizer.safetensors"]) {
    const [a, b] = [SafetensorsFile.open(join(found, name)), SafetensorsFile.open(join(wanted, name))];
    expect([...a.tensors.keys()].sort()).toEqual([...b.tensors.keys()].sort());
    let off = 0;
    for (const key of a.tensors.keys()) {
      const [left, right] = [a.read(key), b.read(key)];
      for (let i = 0; i < left.length; i++) off = Math.max(off, Math.abs(left[i]! - right[i]!));
    }
    a.close();
    b.close();
    expect(off, name).toBeLessThanOrEqual(bound);
  }
}

interface LossCase {
  logprobs: number[];
  old: (number | null)[];
  advantages: number[];
  weights: number[];
  counts: number[];
  sampler: (number | null)[] | null;
  reference: number[] | null;
  stepTokens: number;
  config: LossConfig;
}

function lossInputs(one: LossCase): LossInputs {
  const numbers = (values: readonly (number | null)[]) => Float64Array.from(values, (value) => value ?? Number.NaN);
  const starts = [0];
  for (const count of one.counts) starts.push(starts.at(-1)! + count);
  return {
    ...{ logprobs: numbers(one.logprobs), oldLogprobs: numbers(one.old), advantages: numbers(one.advantages) },
    ...{ weights: numbers(one.weights), sequenceStarts: starts, stepTokens: one.stepTokens },
    samplerLogprobs: one.sampler && numbers(one.sampler),
    referenceLogprobs: one.reference && numbers(one.reference),
  };
}

function lossCase(): fc.Arbitrary<LossCase> {
  const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 2 });
  const config: fc.Arbitrary<LossConfig> = fc.record({
    algorithm: fc.constantFrom("cispo", "ppo"),
    epsilon: maybe(number(0, 2)),
    epsilonHigh: maybe(number(0, 5)),
    importanceSamplingLevel: fc.constantFrom("token", "sequence", "average", "geometric_average"),
    maxImportanceWeight: maybe(number(0.1, 5)),
    maskProbRatio: fc.boolean(),
    artExactMasking: fc.boolean(),
    tau: maybe(number(0, 1)),
    truncatedImportanceSampling: maybe(number(0.1, 4)),
    klPenaltyCoef: fc.constantFrom(0, 0.1, 1),
    klPenaltySource: fc.constantFrom("current_learner", "sample"),
  });
  return fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 5 }).chain((counts) => {
    const size = counts.reduce((sum, count) => sum + count, 0);
    const each = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: size, maxLength: size });
    const logprob = fc.oneof(number(-6, 0), number(-300, 0));
    return fc.record({
      logprobs: each(logprob),
      old: each(maybe(logprob)),
      advantages: each(number(-3, 3)),
      weights: each(number(0, 2)),
      counts: fc.constant(counts),
      sampler: fc.option(each(fc.option(logprob, { freq: 5 }))),
      reference: fc.option(each(logprob)),
      stepTokens: fc.integer({ min: Math.max(1, size), max: 50 }),
      config,
    });
  });
}
