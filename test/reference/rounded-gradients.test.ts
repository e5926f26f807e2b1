// Gradients over rounded base weights. The forward pass multiplies integers, and the backward pass multiplies the same
// weights, widened. So the gradient must equal that of a float32 model with exactly those weights, up to the rounding
// of activations.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { TaskSequence } from "../../src/training/onnx/batch.ts";
import { gradientStep } from "../../src/training/onnx/gradient-step.ts";
import { parametersOf } from "../../src/training/onnx/pass/lora-sites.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { seededRandom } from "../../src/training/random.ts";
import { families, fixtureFolder } from "./runner-driver.ts";
import { writeWidened } from "./widened-checkpoint.ts";

/** How far rounded activations may move the gradient of models this small, relative to its norm. */
const LIMITS = { int8: 0.08, int4: 0.2 } as const;

/** Several, because in one alone the chance of rounding weighs a lot. */
const SEQUENCES = 4;

function sequence(index: number): TaskSequence {
  const random = seededRandom(5 + index);
  const ids = Int32Array.from({ length: 48 }, () => 3 + Math.floor(random() * 250));
  const predicting = Int32Array.from({ length: 24 }, (_, i) => 23 + i);
  return {
    ...{ index, group: -1, ids, predicting, targets: predicting.map((p) => ids[p + 1]!), advantage: 1, weight: 1 },
    ...{ sampler: new Float64Array(24).fill(-5), precalculated: null, reference: null },
  };
}

async function gradientOf(folder: string, weights: WeightType): Promise<ReadonlyMap<string, Float32Array>> {
  const adapter = loadPeft(folder, readModelConfig(folder));
  const params = parametersOf(adapter);
  const positionsPerBlock = weights === "float32" ? null : 16;
  const model = await TrainableModel.create({ folder, weights, rank: adapter.rank, threads: 1, positionsPerBlock });
  model.setParameters(params, adapter.scale);
  const objective = { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null } as const;
  const sequences = Array.from({ length: SEQUENCES }, (_, index) => sequence(index));
  const passes = { model, sequences, maxBytes: 1e9, between: async () => {} };
  const { gradients } = await gradientStep(passes, objective, params);
  await model.close();
  return gradients;
}

/** ||a - b|| / ||b|| over all parameters. */
function distance(a: ReadonlyMap<string, Float32Array>, b: ReadonlyMap<string, Float32Array>): number {
  let [difference, size] = [0, 0];
  for (const [name, values] of b) {
    for (const [i, value] of values.entries()) {
      difference += (a.get(name)![i]! - value) ** 2;
      size += value ** 2;
    }
  }
  return Math.sqrt(difference / size);
}

it.each(families.flatMap((family) => (["int8", "int4"] as const).map((type) => [family, type] as const)))(
  "%s over %s weights",
  async (family, type) => {
    const folder = mkdtempSync(join(tmpdir(), "widened-"));
    try {
      writeWidened(fixtureFolder(family), type, folder);
      const got = await gradientOf(fixtureFolder(family), type);
      const expected = await gradientOf(folder, "float32");
      expect(distance(got, expected)).toBeLessThan(LIMITS[type]);
      // It is the gradient of the rounded weights, not of the original ones.
      const unrounded = await gradientOf(fixtureFolder(family), "float32");
      expect(distance(got, expected)).toBeLessThan(0.8 * distance(got, unrounded));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
