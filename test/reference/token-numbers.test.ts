// The numbers that a task keeps for every trained token, against a slow computation that shares no code with the trainer:
// logits of the serving engine, the formulas of docs/reference/training.md, and derivatives by differences.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { BatchSequence, Objective } from "../../src/training/contract.ts";
import { TOKEN_FIELDS } from "../../src/training/gradient/token-numbers.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { seededRandom } from "../../src/training/random.ts";
import { blocksFrom, chunk, fixtureFolder, logSoftmax, openRunner } from "./runner-driver.ts";

const base = fixtureFolder("llama");
const random = seededRandom(5);
const some = (count: number) => Array.from({ length: count }, () => 3 + Math.floor(random() * 250));

const EPSILON = 0.2;
const TAU = 0.1;
const COEFFICIENT = 0.05;

/** Sequences of one group begin alike, so the trainer computes their beginning once. */
const prompt = some(12);
const sequences = [
  { ids: [...prompt, ...some(9)], from: 12, advantage: 1.5, weight: 0.7, group: 0 },
  { ids: some(20), from: 5, advantage: -0.8, weight: 1.4, group: 1 },
  { ids: [...prompt, ...some(6)], from: 12, advantage: -1.1, weight: 0.9, group: 0 },
  { ids: some(15), from: 4, advantage: 2, weight: 1, group: 2 },
];

/** Log-probabilities of all tokens after each prefix, with the adapter and without. */
async function distributions() {
  const runner = await openRunner(base, { adaptersFromStart: true });
  const { slot } = await runner.adapters.load(base);
  const under = async (ids: number[], adapterSlot: number) => {
    const [logits] = await runner.forward([chunk(ids, 0, blocksFrom(0, ids.length, 16), { adapterSlot })]);
    const vocab = runner.vocabSize;
    return ids.map((_, p) => logSoftmax(logits!.slice(p * vocab, (p + 1) * vocab)));
  };
  const found = [];
  for (const { ids } of sequences) found.push({ policy: await under(ids, slot), reference: await under(ids, 0) });
  await runner.close();
  return found;
}

async function numbersOf(batch: BatchSequence[], objective: Objective): Promise<Float32Array> {
  const folder = mkdtempSync(join(tmpdir(), "numbers-"));
  writeFileSync(join(folder, "batch"), batch.map((sequence) => JSON.stringify(sequence)).join("\n"));
  let model: TrainableModel | null = null;
  const task = {
    ...{ baseModel: base, weights: "float32" as const, positionsPerBlock: 16, adapter: base, optimizerState: null },
    ...{ batch: join(folder, "batch"), objective, optimizer: RL_DEFAULTS.optimizer, threads: 1, activationBytes: 1e9 },
    // so small a rate leaves the weights of the second step as they were
    steps: [
      { from: 0, to: 3, learningRate: 1e-12 },
      { from: 3, to: 4, learningRate: 1e-12 },
    ],
    ...{ output: join(folder, "step"), tokenNumbers: join(folder, "tokens") },
  };
  await runTask(task, {
    onStep() {},
    between: async () => {},
    async modelFor({ threads }, rank) {
      model = await TrainableModel.create({ folder: base, weights: "float32", rank, threads, positionsPerBlock: null });
      return model;
    },
  });
  await (model as TrainableModel | null)?.close();
  const bytes = readFileSync(join(folder, "tokens"));
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

/** -min(r·A, clip(r)·A), the loss of one token of PPO. */
function ppo(logprob: number, old: number, advantage: number): number {
  const ratio = Math.exp(logprob - old);
  return -Math.min(ratio * advantage, Math.min(Math.max(ratio, 1 - EPSILON), 1 + EPSILON) * advantage);
}

it("keeps what an independent computation gives, in the order of the batch", async () => {
  const found = await distributions();
  const trained = sequences.map(({ ids, from }) => ids.flatMap((_, i) => (i >= from ? [i] : [])));
  const logprobs = sequences.map(({ ids }, s) => trained[s]!.map((i) => found[s]!.policy[i - 1]![ids[i]!]!));
  // ratios from about 0.6 to 1.6, so that some are clipped on either side
  const old = logprobs.map((values) => values.map((value) => Math.min(0, value + random() - 0.5)));
  const batch = sequences.map(({ ids, from, advantage, weight, group }, s) => ({
    ...{ ids, mask: ids.map((_, i) => (i >= from ? 1 : 0) as 0 | 1), advantage, weight, group },
    oldLogprobs: ids.map((_, i) => (i >= from ? old[s]![i - from]! : null)),
  }));
  const loss = { ...RL_DEFAULTS.loss, algorithm: "ppo" as const, epsilon: EPSILON, epsilonHigh: null, tau: TAU };
  const rows = await numbersOf(batch, {
    ...{ kind: "policy", precalculateLogprobs: false, reference: "base" },
    loss: { ...loss, klPenaltyCoef: COEFFICIENT },
  });

  const kls = sequences.map(({ ids }, s) =>
    trained[s]!.map((i, t) => logprobs[s]![t]! - found[s]!.reference[i - 1]![ids[i]!]!),
  );
  const expected = sequences.flatMap(({ advantage, weight }, s) => {
    const kl = kls[s]!;
    // The last sequence is a gradient step of its own. The penalty is centred over a step.
    const stepKls = (s === 3 ? [kl] : kls.slice(0, 3)).flat();
    const [stepTokens, meanKl] = [stepKls.length, stepKls.reduce((sum, value) => sum + value, 0) / stepKls.length];
    return trained[s]!.map((i, t) => {
      const [current, before] = [logprobs[s]![t]!, old[s]![t]!];
      const own = advantage - TAU * (current - before) + COEFFICIENT * (meanKl - kl[t]!);
      const ratio = Math.exp(current - before);
      const h = 1e-6;
      const slope = (ppo(current + h, before, own) - ppo(current - h, before, own)) / (2 * h);
      const entropy = -found[s]!.policy[i - 1]!.reduce((sum, value) => sum + Math.exp(value) * value, 0);
      const clipped = ratio < 1 - EPSILON ? -1 : ratio > 1 + EPSILON ? 1 : 0;
      return [current, ratio, clipped, own, weight, (slope * weight) / stepTokens, entropy, kl[t]!];
    });
  });
  expect(rows).toHaveLength(expected.flat().length);
  for (const [row, values] of expected.entries()) {
    for (const [i, value] of values.entries()) {
      const got = rows[row * TOKEN_FIELDS.length + i]!;
      expect(Math.abs(got - value), `row ${row}, ${TOKEN_FIELDS[i]}: ${got}, not ${value}`).toBeLessThan(2e-4);
    }
  }
  expect(new Set(expected.map(([, , clipped]) => clipped))).toEqual(new Set([-1, 0, 1]));
});

it("keeps log-probabilities, gradients and entropies of supervised tasks", async () => {
  const found = await distributions();
  const batch = sequences.map(({ ids, from, group }) => ({
    ...{ ids, mask: ids.map((_, i) => (i >= from ? 1 : 0) as 0 | 1), advantage: 1, weight: 1, group },
    oldLogprobs: ids.map(() => null),
  }));
  const rows = await numbersOf(batch, { kind: "cross_entropy" });
  const [first, from] = [sequences[0]!, sequences[0]!.from];
  const stepTokens = sequences.slice(0, 3).reduce((sum, { ids, from }) => sum + ids.length - from, 0);
  const value = (field: (typeof TOKEN_FIELDS)[number]) => rows[TOKEN_FIELDS.indexOf(field)]!;
  expect(value("new_logprob")).toBeCloseTo(found[0]!.policy[from - 1]![first.ids[from]!]!, 4);
  expect(value("gradient")).toBeCloseTo(-1 / stepTokens, 7);
  expect(value("entropy")).toBeGreaterThan(0);
  for (const field of ["ratio", "clipped", "advantage", "weight", "reference_kl"] as const)
    expect(value(field)).toBeNaN();
});
