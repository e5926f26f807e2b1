// Compares gradients, optimiser step and log-probabilities of every family's fixture with numbers computed in float64.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { SafetensorsFile } from "../../src/model/checkpoint/safetensors.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import { type LossConfig, RL_DEFAULTS } from "../../src/training/config.ts";
import { policyLoss } from "../../src/training/gradient/loss.ts";
import { adamW } from "../../src/training/gradient/optimizer.ts";
import { layOut } from "../../src/training/onnx/packing/micro-batch.ts";
import { parametersOf } from "../../src/training/onnx/pass/lora-sites.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { families, fixtureFolder, parameterOf } from "./runner-driver.ts";

const CONFIGS: Record<string, Partial<LossConfig>> = {
  cispo: {},
  ppo: { algorithm: "ppo" },
  ppo_clip_higher_tau: { algorithm: "ppo", epsilon: 0.2, epsilonHigh: 0.28, tau: 0.1 },
};

const OPTIMIZER = { ...RL_DEFAULTS.optimizer, learningRate: 1e-3 };

describe.each(families)("%s", (family) => {
  const folder = fixtureFolder(family);
  const reference = SafetensorsFile.open(`${folder}/reference.safetensors`);
  const numbers = (name: string) => {
    const entry = reference.entry(name);
    if (entry.dtype === "F32") return Float64Array.from(reference.read(name));
    const bytes = reference.readBytes(name).buffer;
    if (entry.dtype === "F64") return new Float64Array(bytes);
    if (entry.dtype === "I64") return Float64Array.from(new BigInt64Array(bytes), Number);
    if (entry.dtype === "BOOL" || entry.dtype === "U8") return Float64Array.from(new Uint8Array(bytes));
    throw new Error(`unexpected dtype ${entry.dtype}`);
  };
  const losses = JSON.parse(readFileSync(`${folder}/reference.json`, "utf8"));
  const config = readModelConfig(folder);
  const adapter = loadPeft(folder, config);
  const params = parametersOf(adapter);
  const ids = Int32Array.from(numbers("train.ids"));
  const mask = numbers("train.mask");
  const predicting = Int32Array.from([...mask.keys()].filter((p) => mask[p] === 1));
  const targets = predicting.map((p) => ids[p + 1]!);
  const batch = layOut([{ shared: 0, members: [{ index: 0, ids, predicting, targets }] }]);
  const between = async () => {};
  const masked = (name: string) => Float64Array.from(predicting, (p) => numbers(name)[p]!);

  function lossOf(logprobs: Float64Array, settings: Partial<LossConfig>) {
    return policyLoss(
      {
        logprobs,
        oldLogprobs: masked("train.old_logprobs"),
        advantages: masked("train.advantages"),
        weights: new Float64Array(predicting.length).fill(1),
        sequenceStarts: [0, predicting.length],
        samplerLogprobs: null,
        referenceLogprobs: null,
        klMean: null,
        stepTokens: predicting.length,
      },
      { ...RL_DEFAULTS.loss, ...settings },
    );
  }

  async function gradients(model: TrainableModel, settings: Partial<LossConfig>) {
    const pass = await model.forward(batch, "everything", between);
    const { loss, gradient } = lossOf(Float64Array.from(pass.logprobs), settings);
    const into = new Map([...params].map(([name, value]) => [name, new Float32Array(value.length)]));
    await model.backward(pass, gradient, into, between);
    return { pass, loss, into };
  }

  /** ||got - expected|| / ||expected|| over all tensors whose names begin with this. */
  function relativeError(got: ReadonlyMap<string, Float32Array>, prefix: string): number {
    let [difference, size] = [0, 0];
    for (const name of reference.tensors.keys()) {
      if (!name.startsWith(prefix) || !name.includes("lora_")) continue;
      const expected = numbers(name);
      const values = got.get(parameterOf(config, name))!;
      let [own, ownSize] = [0, 0];
      for (let i = 0; i < expected.length; i++) {
        own += (values[i]! - expected[i]!) ** 2;
        ownSize += expected[i]! ** 2;
      }
      expect(Math.sqrt(own), name).toBeLessThan(1e-3 * Math.sqrt(ownSize) + 1e-9);
      difference += own;
      size += ownSize;
    }
    expect(size).toBeGreaterThan(0);
    return Math.sqrt(difference / size);
  }

  it("log-probabilities, gradients of every configuration, and the adapter after one step", async () => {
    const model = await TrainableModel.create({
      folder,
      weights: "float32",
      rank: adapter.rank,
      threads: 1,
      positionsPerBlock: null,
    });
    model.setParameters(params, adapter.scale);
    const expected = numbers("train.new_logprobs");
    const steps = [...reference.tensors.keys()]
      .filter((name) => name.startsWith("after.") && name.includes("lora_"))
      .map((name) => ({
        parameter: parameterOf(config, name),
        gradient: numbers(name.replace("after.", "grad.cispo.")),
        wanted: numbers(name),
      }));
    expect(steps.length).toBeGreaterThan(0);
    for (const [name, settings] of Object.entries(CONFIGS)) {
      const { pass, loss, into } = await gradients(model, settings);
      for (const [i, p] of predicting.entries()) expect(Math.abs(pass.logprobs[i]! - expected[p]!)).toBeLessThan(1e-5);
      // Relative: cispo's loss is a product of ratios and log-probabilities, which multiplies their errors.
      const wantedLoss: number = losses.losses[name].loss;
      expect(Math.abs(loss - wantedLoss)).toBeLessThan(1e-5 * Math.max(1, Math.abs(wantedLoss)));
      // of the reference's own log-probabilities
      expect(lossOf(masked("train.new_logprobs"), settings).loss).toBeCloseTo(wantedLoss, 5);
      expect(relativeError(into, `grad.${name}.`)).toBeLessThan(1e-4);
      if (name !== "cispo") continue;
      const after = adamW.update(params, into, adamW.init(params), OPTIMIZER);
      const exact = new Map(steps.map(({ parameter, gradient }) => [parameter, Float32Array.from(gradient)]));
      const exactAfter = adamW.update(params, exact, adamW.init(params), OPTIMIZER);
      for (const { parameter, gradient, wanted } of steps) {
        const [values, exactValues] = [after.params.get(parameter)!, exactAfter.params.get(parameter)!];
        const rms = Math.hypot(...gradient) / Math.sqrt(gradient.length);
        for (const [i, value] of wanted.entries()) {
          expect(Math.abs(exactValues[i]! - value)).toBeLessThan(1e-7);
          // Of some 7,500 numbers, one to three have gradients that float32 does not resolve. AdamW moves them as far as others.
          const resolved = Math.abs(gradient[i]!) > 1e-4 * rms;
          expect(Math.abs(values[i]! - value)).toBeLessThan(resolved ? 1e-5 : 1e-4);
        }
      }
      model.setParameters(after.params, adapter.scale);
      const moved = await model.forward(batch, "everything", between);
      const wanted = numbers("after.new_logprobs");
      for (const [i, p] of predicting.entries()) expect(Math.abs(moved.logprobs[i]! - wanted[p]!)).toBeLessThan(1e-4);
      model.setParameters(params, adapter.scale);
    }
    await model.close();
  });
});
