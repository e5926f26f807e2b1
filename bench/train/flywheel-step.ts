// Our side of `npm run bench:train`, in its own process: LoRA steps with the trainer's own passes and optimizer.

import { blockOfLinks, DEFAULT_LINK_SIZE } from "../../src/app/embedded-engine.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { adamW } from "../../src/training/gradient/optimizer.ts";
import type { TaskSequence } from "../../src/training/onnx/batch.ts";
import { gradientStep } from "../../src/training/onnx/gradient-step.ts";
import { parametersOf } from "../../src/training/onnx/pass/lora-sites.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { type Lap, startLap } from "../process/stopwatch.ts";
import { tokenAt } from "./text.ts";

export interface StepOptions {
  folder: string;
  weights: WeightType;
  threads: number;
  rank: number;
}

export interface StepsLap extends Lap {
  losses: number[];
}

export interface StepRunner {
  run(sequences: number, length: number, steps: number): Promise<StepsLap>;
}

/** As in serving: with rounded weights, attention is summed in the serving engine's blocks. */
const SERVED_BLOCK = blockOfLinks(DEFAULT_LINK_SIZE);

export async function create({ folder, weights, threads, rank }: StepOptions): Promise<StepRunner> {
  const config = readModelConfig(folder);
  const adapter = identityAdapter(config, { rank, alpha: 16 }, 7);
  const positionsPerBlock = weights === "float32" ? null : SERVED_BLOCK;
  const model = await TrainableModel.create({ folder, weights, rank, threads, positionsPerBlock });
  let params = parametersOf(adapter);
  let state = adamW.init(params);
  const optimizer = { ...RL_DEFAULTS.optimizer, learningRate: 1e-4 };
  return {
    async run(sequences, length, steps) {
      const batch = Array.from({ length: sequences }, (_, s) => sequence(s, length, config.vocabSize));
      const passes = { model, sequences: batch, maxBytes: Number.MAX_SAFE_INTEGER, between: async () => {} };
      const losses: number[] = [];
      const lap = startLap();
      for (let i = 0; i < steps; i++) {
        model.setParameters(params, adapter.scale);
        const { gradients, metrics } = await gradientStep(passes, { kind: "cross_entropy" }, params);
        ({ params, state } = adamW.update(params, gradients, state, optimizer));
        losses.push(metrics.loss!);
      }
      return { ...lap(sequences * length * steps), losses };
    },
  };
}

function sequence(index: number, length: number, vocabulary: number): TaskSequence {
  const ids = Int32Array.from({ length }, (_, position) => tokenAt(index, position, vocabulary));
  return {
    index,
    ids,
    predicting: Int32Array.from({ length: length - 1 }, (_, position) => position),
    targets: ids.slice(1),
    ...{ group: -1, advantage: 1, weight: 1, sampler: new Float64Array(0), precalculated: null, reference: null },
  };
}
