// The trainer's passes give the same log-probabilities as the sampler for the same tokens in every weight type, and the
// same numbers however sequences are packed into rows and micro-batches.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { eachPair, type LoraAdapter } from "../../src/model/lora/lora-adapter.ts";
import { loadPeft, savePeft } from "../../src/model/lora/peft.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { Objective } from "../../src/training/contract.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { ALGORITHM_NAMES } from "../../src/training/gradient/algorithms.ts";
import { adamW } from "../../src/training/gradient/optimizer.ts";
import { TOKEN_FIELDS } from "../../src/training/gradient/token-numbers.ts";
import type { TaskSequence } from "../../src/training/onnx/batch.ts";
import { gradientStep, logprobsOf } from "../../src/training/onnx/gradient-step.ts";
import { layOut } from "../../src/training/onnx/packing/micro-batch.ts";
import { parametersOf } from "../../src/training/onnx/pass/lora-sites.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { seededRandom } from "../../src/training/random.ts";
import { blocksFrom, chunk, families, fixtureFolder, logSoftmax, openRunner, typesFor } from "./runner-driver.ts";
import { writeWideCheckpoint } from "./wide-checkpoint.ts";

const LIMITS = { float32: 1e-4, int8: 1e-3, int4: 1e-3 } as const;
const between = async () => {};

function tokens(count: number, seed: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => 3 + Math.floor(random() * 250));
}

function trained(index: number, group: number, prompt: number[], reply: number[]): TaskSequence {
  return {
    index,
    group,
    ids: Int32Array.from([...prompt, ...reply]),
    predicting: Int32Array.from(reply, (_, i) => prompt.length + i - 1),
    targets: Int32Array.from(reply),
    advantage: index % 2 === 0 ? 1 : -1,
    weight: 1 + index / 10,
    sampler: Float64Array.from(reply, (_, i) => -5 - (i % 3) / 10),
    precalculated: null,
    reference: null,
  };
}

describe.each(families)("%s: sampler and trainer agree", (family) => {
  const limits = Object.entries(LIMITS) as [keyof typeof LIMITS, number][];
  it.each(typesFor(limits, families.indexOf(family)))("%s within %d", async (weights, limit) => {
    const folder = fixtureFolder(family);
    const adapter = loadPeft(folder, readModelConfig(folder));
    const ids = tokens(60, 7);
    const runner = await openRunner(folder, { weightType: weights, adaptersFromStart: true });
    const { slot } = await runner.adapters.load(folder);
    const blocks = blocksFrom(0, ids.length, 16);
    // As served: a prefill of the prompt, then token by token.
    const served: number[] = [];
    const rows = await runner.forward([chunk(ids.slice(0, 32), 0, blocks, { adapterSlot: slot })]);
    const vocab = runner.vocabSize;
    for (let p = 0; p < 32; p++) served.push(logSoftmax(rows[0]!.slice(p * vocab, (p + 1) * vocab))[ids[p + 1]!]!);
    for (let p = 32; p + 1 < ids.length; p++) {
      const [row] = await runner.forward([chunk([ids[p]!], p, blocks, { adapterSlot: slot, logits: "last" })]);
      served.push(logSoftmax(row!)[ids[p + 1]!]!);
    }
    await runner.close();
    const predicting = Int32Array.from({ length: ids.length - 1 }, (_, p) => p);
    const targets = Int32Array.from(ids.slice(1));
    const sequence = { index: 0, ids: Int32Array.from(ids), predicting, targets };
    const beginning = { predicting: predicting.slice(0, 20), targets: targets.slice(0, 20) };
    const shorter = { index: 1, ids: Int32Array.from(ids.slice(0, 21)), ...beginning };
    // float32 may sum in any order. Rounded weights need the order of serving.
    for (const positionsPerBlock of weights === "float32" ? [null, 16] : [16]) {
      const model = await TrainableModel.create({ folder, weights, rank: adapter.rank, threads: 1, positionsPerBlock });
      model.setParameters(parametersOf(adapter), adapter.scale);
      const families = [sequence, shorter].map((member) => ({ shared: 0, members: [member] }));
      const pass = await model.forward(layOut(families), "nothing", between);
      const own = positionsPerBlock === null ? limit : 1e-5;
      for (const [p, value] of served.entries()) expect(Math.abs(pass.logprobs[p]! - value)).toBeLessThan(own);
      for (const [p] of shorter.predicting.entries()) {
        expect(Math.abs(pass.logprobs[served.length + p]! - served[p]!)).toBeLessThan(own);
      }
      await model.close();
    }
  });
});

// Enough layers that a stage would have to nest its branches, whose weights would go to other kernels.
describe("the bundled model: sampler and trainer agree", () => {
  const folder = fileURLToPath(new URL("../../models/flywheel-mini", import.meta.url));
  const config = readModelConfig(folder);
  const ids = Int32Array.from(tokens(40, 3));

  async function expectSame(weights: WeightType, adapter: LoraAdapter, threads: number): Promise<void> {
    const saved = join(mkdtempSync(join(tmpdir(), "flywheel-adapter-")), "adapter");
    savePeft(saved, adapter, config, { baseModel: "flywheel-mini" });
    const runner = await openRunner(folder, {
      weightType: weights,
      maxLoraRank: adapter.rank,
      adaptersFromStart: true,
    });
    const { slot: adapterSlot } = await runner.adapters.load(saved);
    const [rows] = await runner.forward([chunk([...ids], 0, blocksFrom(0, ids.length, 16), { adapterSlot })]);
    const model = await TrainableModel.create({ folder, weights, rank: adapter.rank, threads, positionsPerBlock: 16 });
    model.setParameters(parametersOf(adapter), adapter.scale);
    const predicting = Int32Array.from({ length: ids.length - 1 }, (_, p) => p);
    const member = { index: 0, ids, predicting, targets: ids.subarray(1) };
    const pass = await model.forward(layOut([{ shared: 0, members: [member] }]), "nothing", between);
    for (const [p, value] of pass.logprobs.entries()) {
      const row = rows!.slice(p * config.vocabSize, (p + 1) * config.vocabSize);
      // The trainer's own sum over the vocabulary is float32.
      expect(Math.abs(logSoftmax(row)[ids[p + 1]!]! - value)).toBeLessThan(1e-6 * Math.max(1, Math.abs(value)));
    }
    await model.close();
    await runner.close();
  }

  it.each(typesFor(["float32", "int8", "int4"] as const, 1))("%s to the last bits", async (weights) => {
    await expectSame(weights, identityAdapter(config, { rank: 2, alpha: 4 }, 1), 1);
  });

  // Rounding amplifies the smallest difference in what the adapter adds.
  it.each(typesFor(["int8", "int4"] as const, 1))(
    "%s to the last bits, with an adapter of many columns",
    async (weights) => {
      const adapter = identityAdapter(config, { rank: 32, alpha: 32 }, 1);
      const random = seededRandom(1);
      for (const { pair } of eachPair(adapter.layers)) for (const i of pair.b.keys()) pair.b[i] = (random() - 0.5) / 10;
      await expectSame(weights, adapter, 2);
    },
  );
});

// One query head per key head: 129 queries must not become calls of 128 and 1.
it("gives a shared prefix of 129 tokens the same bits as in a sequence alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-heads-"));
  writeWideCheckpoint(folder, { family: "llama", hidden: 256, intermediate: 256, heads: 8, kvHeads: 8, headDim: 32 });
  const adapter = identityAdapter(readModelConfig(folder), { rank: 2, alpha: 4 }, 1);
  const model = await TrainableModel.create({ folder, weights: "float32", rank: 2, threads: 1, positionsPerBlock: 16 });
  model.setParameters(parametersOf(adapter), adapter.scale);
  const predicting = Int32Array.from({ length: 139 }, (_, p) => p);
  for (const seed of [1, 2, 3]) {
    const ids = tokens(140, seed);
    const members = [ids, [...ids.slice(0, 129), ...tokens(11, 9)]].map((each, index) => ({
      index,
      ids: Int32Array.from(each),
      predicting,
      targets: Int32Array.from(each.slice(1)),
    }));
    const alone = await model.forward(layOut([{ shared: 0, members: members.slice(0, 1) }]), "nothing", between);
    const shared = await model.forward(layOut([{ shared: 129, members }]), "nothing", between);
    expect(shared.logprobs.slice(0, 139)).toEqual(alone.logprobs);
  }
  await model.close();
  rmSync(folder, { recursive: true });
});

describe("rows and micro-batches", () => {
  const folder = fixtureFolder("mistral");
  const adapter = loadPeft(folder, readModelConfig(folder));
  const params = parametersOf(adapter);
  const objective: Objective = { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null };
  const prompt = tokens(40, 1);
  const sequences = [
    ...[5, 9, 3, 12].map((length, i) => trained(i, 0, prompt, tokens(length, 10 + i))),
    trained(4, 1, tokens(7, 2), tokens(20, 3)),
    trained(5, -1, tokens(4, 4), tokens(6, 5)),
  ];
  const separate = sequences.map((sequence) => ({ ...sequence, group: -1 }));

  it("give the numbers of separate sequences when they share a prefix, for fewer tokens", async () => {
    const model = await TrainableModel.create({
      folder,
      weights: "float32",
      rank: adapter.rank,
      threads: 1,
      positionsPerBlock: null,
    });
    model.setParameters(params, adapter.scale);
    const options = { model, maxBytes: 1e9, between };
    const run = (list: TaskSequence[]) => gradientStep({ ...options, sequences: list }, objective, params);
    const [shared, apart] = [await run(sequences), await run(separate)];
    expect(shared.rows).toBeLessThan(apart.rows - 100);
    expect(apart.rows).toBe(separate.reduce((sum, { ids }) => sum + ids.length, 0));
    expect(shared.metrics.loss).toBeCloseTo(apart.metrics.loss!, 5);
    for (const [name, values] of apart.gradients) {
      const scale = Math.max(...values.map(Math.abs));
      const other = shared.gradients.get(name)!;
      for (const [i, value] of values.entries()) expect(Math.abs(other[i]! - value)).toBeLessThan(1e-5 * scale + 1e-8);
    }
    const logprobs = [
      await logprobsOf({ ...options, sequences }),
      await logprobsOf({ ...options, sequences: separate }),
    ];
    for (const { index } of sequences) {
      for (const [i, value] of logprobs[1]!.get(index)!.entries()) {
        expect(Math.abs(logprobs[0]!.get(index)![i]! - value)).toBeLessThan(1e-5);
      }
    }
    await model.close();
  });

  it("give the same gradient in any number of micro-batches, and refuse sequences that do not fit", async () => {
    const model = await TrainableModel.create({
      folder,
      weights: "float32",
      rank: adapter.rank,
      threads: 1,
      positionsPerBlock: null,
    });
    model.setParameters(params, adapter.scale);
    const run = (maxBytes: number, some = sequences) =>
      gradientStep({ model, sequences: some, maxBytes, between }, objective, params);
    const whole = await run(1e9);
    const parts = await run(model.passBytes(55, 55, "everything"));
    for (const [name, values] of whole.gradients) {
      const scale = Math.max(...values.map(Math.abs));
      const other = parts.gradients.get(name)!;
      for (const [i, value] of values.entries()) expect(Math.abs(other[i]! - value)).toBeLessThan(1e-5 * scale + 1e-8);
    }
    const little = model.passBytes(45, 45, "layer inputs");
    await expect(run(little)).rejects.toThrow("do not fit the memory allowed for training");
    const short = await run(
      little,
      sequences.filter(({ ids }) => ids.length <= 45),
    );
    expect(short.metrics.num_trainable_tokens).toBe(5 + 3 + 20 + 6);
    await model.close();
  });

  // A forward pass over the step comes first where the penalty compares current log-probabilities.
  it.each([
    ["current_learner", true],
    ["sample", false],
  ] as const)(
    "share one mean of the KL penalty in any number of micro-batches (%s)",
    async (klPenaltySource, passes) => {
      const options = { folder, weights: "float32", rank: adapter.rank, threads: 1, positionsPerBlock: null } as const;
      const model = await TrainableModel.create(options);
      model.setParameters(params, adapter.scale);
      const loss = { ...RL_DEFAULTS.loss, klPenaltyCoef: 0.4, klPenaltySource };
      const compared = sequences.map((sequence) => ({
        ...sequence,
        reference: Float64Array.from(sequence.predicting, (_, i) => -4 - ((i + sequence.index) % 4) / 2),
      }));
      const run = async (maxBytes: number, some = compared) => {
        const forward = vi.spyOn(model, "forward");
        const step = await gradientStep({ model, sequences: some, maxBytes, between }, { ...objective, loss }, params);
        const rows = forward.mock.calls.reduce((sum, [batch]) => sum + batch.ids.length, 0);
        forward.mockRestore();
        return { ...step, first: rows - step.rows };
      };
      const whole = await run(1e9);
      const inParts = await run(model.passBytes(55, 55, "everything"));
      const apart = await run(
        1e9,
        compared.map((sequence) => ({ ...sequence, group: -1 })),
      );
      for (const other of [inParts, apart]) {
        expect(other.metrics.kl_policy_ref).toBeCloseTo(whole.metrics.kl_policy_ref!, 5);
        for (const [name, values] of whole.gradients) {
          const scale = Math.max(...values.map(Math.abs));
          const found = other.gradients.get(name)!;
          for (const [i, value] of values.entries())
            expect(Math.abs(found[i]! - value)).toBeLessThan(1e-5 * scale + 1e-8);
        }
      }
      // by hand, from the log-probabilities alone
      const logprobs = await logprobsOf({ model, sequences: compared, maxBytes: 1e9, between });
      const distances = compared.flatMap(({ index, sampler, reference }) =>
        Array.from(
          reference,
          (value, i) => (klPenaltySource === "sample" ? sampler[i]! : logprobs.get(index)![i]!) - value,
        ),
      );
      const mean = distances.reduce((sum, value) => sum + value, 0) / distances.length;
      const wanted = compared.flatMap(({ advantage, reference }) => Array.from(reference, () => advantage));
      const column = TOKEN_FIELDS.indexOf("advantage");
      for (const { tokens } of [whole, inParts, apart]) {
        for (const [t, distance] of distances.entries()) {
          const found = tokens.values[t * TOKEN_FIELDS.length + column]!;
          expect(Math.abs(found - (wanted[t]! + 0.4 * (mean - distance)))).toBeLessThan(1e-5);
        }
      }
      expect([whole.first, inParts.first]).toEqual([0, passes ? inParts.rows : 0]);
      await model.close();
    },
  );

  it("have room for many identical replies", async () => {
    const options = { folder, weights: "float32", rank: adapter.rank, threads: 1, positionsPerBlock: null } as const;
    const model = await TrainableModel.create(options);
    model.setParameters(params, adapter.scale);
    const reply = tokens(60, 6);
    const alike = Array.from({ length: 2500 }, (_, i) => trained(i, 0, prompt, reply));
    const { metrics } = await gradientStep({ model, sequences: alike, maxBytes: 4e9, between }, objective, params);
    expect(metrics).toMatchObject({ num_trainable_tokens: 150_000, num_datums: 2500 });
    await model.close();
  });

  it("have gradients of zero, not NaN, for the smallest possible derivatives", async () => {
    const options = { folder, weights: "float32", rank: adapter.rank, threads: 1, positionsPerBlock: null } as const;
    const model = await TrainableModel.create(options);
    model.setParameters(params, adapter.scale);
    const loss = { ...RL_DEFAULTS.loss, maxImportanceWeight: 1e-320 };
    const step = await gradientStep({ model, sequences, maxBytes: 1e9, between }, { ...objective, loss }, params);
    for (const values of step.gradients.values()) expect(values.filter((value) => value !== 0)).toHaveLength(0);
    await model.close();
  });

  it("accept the lowest possible log-probability from a sampler", async () => {
    const options = { folder, weights: "float32", rank: adapter.rank, threads: 1, positionsPerBlock: null } as const;
    const model = await TrainableModel.create(options);
    model.setParameters(params, adapter.scale);
    const extreme = sequences.map((sequence) => ({ ...sequence, sampler: sequence.sampler.slice().fill(-9999, 1, 2) }));
    for (const algorithm of ALGORITHM_NAMES) {
      const loss = { ...RL_DEFAULTS.loss, algorithm };
      const step = await gradientStep(
        { model, sequences: extreme, maxBytes: 1e9, between },
        { ...objective, loss },
        params,
      );
      expect(Object.entries(step.metrics).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
      const update = adamW.update(params, step.gradients, adamW.init(params), RL_DEFAULTS.optimizer);
      expect(Number.isFinite(update.gradNorm)).toBe(true);
      for (const values of update.params.values()) {
        expect(values.filter((value) => !Number.isFinite(value))).toHaveLength(0);
      }
    }
    await model.close();
  });
});
