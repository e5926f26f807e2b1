// What the tests of the PyTorch trainer share: its process, small tasks for it and for the embedded trainer, comparisons.

import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect } from "vitest";
import { SafetensorsFile } from "../../src/model/checkpoint/safetensors.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { BatchSequence, Objective, StepMetrics, TrainerTask } from "../../src/training/contract.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { CommandProcess } from "../../src/training/process/command-process.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";

/** A Python with torch and transformers. Without one, these tests are skipped. */
export const PYTHON = process.env.FLYWHEEL_TORCH_PYTHON;
export const PACKAGE = fileURLToPath(new URL("../../trainer", import.meta.url));
export type Family = Parameters<typeof fixtureFolder>[0];

export const folder = mkdtempSync(join(tmpdir(), "torch-"));
const trainers: ProcessTrainer[] = [];
afterAll(async () => {
  await Promise.all(trainers.map((trainer) => trainer.close()));
  rmSync(folder, { recursive: true });
});

const ENV = { PYTHONPATH: PACKAGE, OMP_NUM_THREADS: "1", HF_HUB_OFFLINE: "1", TRANSFORMERS_VERBOSITY: "error" };

export async function python(...args: string[]): Promise<string> {
  const options = { env: { ...process.env, ...ENV }, maxBuffer: 2 ** 28 };
  return (await promisify(execFile)(PYTHON!, args, options)).stdout;
}

export const torchrun = (ranks: number) =>
  `"${PYTHON}" -m torch.distributed.run --standalone --nproc-per-node=${ranks} -m flywheel_trainer`;

/** `env`: added to the trainer's environment. `tries`: of a task whose process is lost. */
export function torchTrainer(ranks = 1, env: Record<string, string> = {}, tries = 1): ProcessTrainer {
  return commandTrainer(ranks === 1 ? `"${PYTHON}" -m flywheel_trainer` : torchrun(ranks), env, { tries });
}

export function commandTrainer(
  command: string,
  env: Record<string, string> = {},
  { tries = 1, address }: { tries?: number; address?: { host: string; port: number } } = {},
): ProcessTrainer {
  const onOutput = process.env.FLYWHEEL_TORCH_OUTPUT ? (text: string) => process.stderr.write(text) : undefined;
  const options = {
    command,
    env: { ...ENV, ...env },
    startMs: 300_000,
    pingMs: 10_000,
    ...(onOutput && { onOutput }),
    ...(address && { address }),
  };
  const start = () => new CommandProcess(options);
  const trainer = new ProcessTrainer({ start, idleMs: 60_000, cancelGraceMs: 10_000, stallMs: 300_000, tries });
  trainers.push(trainer);
  return trainer;
}

/** Everything that was started with this value in its environment. On Linux. */
export function processesWith(marker: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, "latin1").includes(marker)
        ? [Number(name)]
        : [];
    } catch {
      return []; // it has ended
    }
  });
}

/** The checkpoint alone: beside an adapter, transformers would load that too. */
export function checkpoint(family: Family): string {
  const target = join(folder, family);
  mkdirSync(target, { recursive: true });
  for (const file of ["config.json", "model.safetensors"]) {
    copyFileSync(join(fixtureFolder(family), file), join(target, file));
  }
  return target;
}

export interface Wanted {
  family: Family;
  objective: Objective;
  steps: number;
  /** Step to continue. */
  from?: string;
  shared?: boolean;
  activationBytes?: number;
  learningRate?: number;
  /** Keeps the numbers of every trained token. */
  numbers?: boolean;
}

export const OBJECTIVES: readonly Objective[] = [
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
export function taskOf(wanted: Wanted): TrainerTask {
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
    ...{
      objective: wanted.objective,
      optimizer: RL_DEFAULTS.optimizer,
      output: join(home, "step"),
      tokenNumbers: wanted.numbers ? join(home, "numbers") : null,
    },
    ...{ threads: 1, activationBytes: wanted.activationBytes ?? 1e9 },
  };
}

export async function run(trainer: ProcessTrainer, wanted: Wanted) {
  const task = taskOf(wanted);
  const steps: StepMetrics[] = [];
  const { tokens } = await trainer.train(task, (metrics) => steps.push(metrics), new AbortController().signal);
  return { steps, tokens, output: task.output, numbers: numbersOf(task) };
}

export async function embedded(wanted: Wanted) {
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
    return { steps, tokens, output: task.output, numbers: numbersOf(task) };
  } finally {
    await (model as TrainableModel | null)?.close();
  }
}

/** The rows of the task's file, one after the other; empty if it keeps none. */
function numbersOf({ tokenNumbers }: TrainerTask): Float32Array {
  if (tokenNumbers === null) return new Float32Array(0);
  const bytes = readFileSync(tokenNumbers);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

export function expectSameSteps(found: readonly StepMetrics[], wanted: readonly StepMetrics[], bound = 1e-4): void {
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

export function expectSameAdapters(found: string, wanted: string, bound: number): void {
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
