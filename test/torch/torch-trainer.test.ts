// The PyTorch trainer beside the embedded one: the same loss, the same numbers on every family, the same steps. Needs a
// Python with torch and transformers, named by FLYWHEEL_TORCH_PYTHON.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { LossConfig } from "../../src/training/config.ts";
import { type LossInputs, policyLoss } from "../../src/training/gradient/loss.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";
import { needing, TORCH } from "../support/needs.ts";
import {
  checkpoint,
  embedded,
  expectSameAdapters,
  expectSameSteps,
  type Family,
  folder,
  OBJECTIVES,
  PACKAGE,
  python,
  run,
  torchTrainer,
} from "./torch-harness.ts";

const FAMILIES: readonly Family[] = [
  "llama",
  "llama3",
  "qwen2",
  "qwen3",
  "mistral",
  "gemma3",
  "olmo2",
  "granite",
  "smollm3",
];

needing(TORCH).describe("the torch trainer", { timeout: 300_000 }, () => {
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

  it("computes the 48 loss vectors", async () => {
    const path = fileURLToPath(new URL("../fixtures/training-vectors.json", import.meta.url));
    const found = JSON.parse(await python(join(PACKAGE, "tests/vectors.py"), path)) as Record<string, number>;
    expect(found.count).toBe(48);
    expect(found.unequal).toBe(0);
    expect(found.loss).toBeLessThanOrEqual(1e-9);
    expect(found.gradient).toBeLessThanOrEqual(1e-9);
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

  it.each(["llama", "gemma3"] as const)(
    "gives shared prompts the bits of separate ones with sums in float64, as on GPUs that have them (%s)",
    async (family) => {
      const output = await python(join(PACKAGE, "tests/wide.py"), checkpoint(family), fixtureFolder(family));
      const found = JSON.parse(output) as Record<string, number>;
      expect(found.shared).toBeLessThanOrEqual(1e-6);
      expect(found.logprobs).toBeLessThanOrEqual(1e-5);
      expect(found.plain).toBeLessThanOrEqual(1e-4);
      for (const [name, off] of Object.entries(found)) {
        if (name.includes("gradient")) expect(off, name).toBeLessThanOrEqual(1e-5);
      }
    },
  );

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
        expectSameAdapters(crossed.output, back.output, 1e-5);
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

  it("centres the KL penalty over the whole gradient step, in any number of micro-batches", async () => {
    const [, policy] = OBJECTIVES;
    if (policy?.kind !== "policy") throw new Error("no policy");
    for (const klPenaltySource of ["current_learner", "sample"] as const) {
      const objective = { ...policy, loss: { ...policy.loss, klPenaltyCoef: 0.5, klPenaltySource } };
      const plain = { family: "llama", objective, steps: 2 } as const;
      const [onnx, whole] = [await embedded(plain), await run(torchTrainer(), plain)];
      const parts = await run(torchTrainer(), { ...plain, activationBytes: 300_000 });
      const onnxParts = await embedded({ ...plain, activationBytes: 3_000_000 });
      for (const other of [whole, parts, onnxParts]) {
        expectSameSteps(other.steps, onnx.steps);
        expectSameAdapters(other.output, onnx.output, 1e-5);
      }
    }
  });

  it("gives two ranks the numbers of one", async () => {
    const plain = { family: "llama", objective: OBJECTIVES[1]!, steps: 3 } as const;
    const [one, two] = [await run(torchTrainer(), plain), await run(torchTrainer(2), plain)];
    expectSameSteps(two.steps, one.steps, 1e-6);
    expectSameAdapters(two.output, one.output, 1e-6);
    expect(two.tokens).toBe(one.tokens);
  });

  it("gives ranks that divide the base model the numbers of ranks that hold it whole", async () => {
    // little memory, so that the ranks have different numbers of passes and layers are computed again
    const plain = { family: "llama", objective: OBJECTIVES[1]!, steps: 2, activationBytes: 300_000 } as const;
    const whole = await run(torchTrainer(2), plain);
    const divided = await run(torchTrainer(2, { FLYWHEEL_TRAINER_DIVIDE: "1" }), plain);
    expectSameSteps(divided.steps, whole.steps, 1e-6);
    expectSameAdapters(divided.output, whole.output, 1e-6);
    expect(divided.tokens).toBe(whole.tokens);
  });

  it.each([1, 2])("repeats a task bit for bit when it must be deterministic (%i ranks)", async (ranks) => {
    const env = { FLYWHEEL_TRAINER_DETERMINISTIC: "1" };
    const plain = { family: "qwen3", objective: OBJECTIVES[1]!, steps: 3 } as const;
    const [first, second] = [await run(torchTrainer(ranks, env), plain), await run(torchTrainer(ranks, env), plain)];
    expect(second.steps).toEqual(first.steps);
    for (const name of ["adapter_model.safetensors", "optimizer.safetensors"]) {
      expect(readFileSync(join(second.output, name)).equals(readFileSync(join(first.output, name))), name).toBe(true);
    }
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
    await expect(torch).rejects.toThrow(message.message);
  });
});

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
    klMean: null,
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
