// Takes one optimizer step with the gradients that passes wrote, and saves the new adapter and optimizer state. The
// gradients are summed and divided by the active positions of all passes, as if one pass had read all batches.

import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { SafetensorsFile } from "../../model/checkpoint/safetensors.ts";
import { loadPeft } from "../../model/lora/peft.ts";
import type { UpdateResult, UpdateTask } from "../contract.ts";
import { adamW, type NamedTensors } from "../gradient/optimizer.ts";
import { loadOptimizerState } from "./optimizer-state.ts";
import { parametersOf } from "./pass/lora-sites.ts";
import { saveStep } from "./run-task.ts";

export async function runUpdate(task: UpdateTask): Promise<UpdateResult> {
  const adapter = loadPeft(task.adapter, readModelConfig(task.baseModel));
  const params = parametersOf(adapter);
  const gradients = new Map([...params].map(([name, values]) => [name, new Float32Array(values.length)]));
  for (const file of task.gradients) addGradients(file, 1 / task.activePositions, gradients);
  const state = loadOptimizerState(task.optimizerState, params, "run");
  const update = adamW.update(params, gradients, state, task.optimizer);
  if (![...update.params.values()].every((values) => values.every(Number.isFinite))) {
    const { learningRate } = task.optimizer;
    throw new Error(`the weights are not finite after the step; the learning rate (${learningRate}) may be too large`);
  }
  saveStep(task, adapter, update.params, update.state, "run");
  return { gradNorm: update.gradNorm };
}

function addGradients(path: string, scale: number, into: NamedTensors): void {
  const file = SafetensorsFile.open(path);
  try {
    for (const [name, sum] of into) {
      const values = file.read(name);
      for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + values[i]! * scale;
    }
  } finally {
    file.close();
  }
}
