// Takes one optimizer step with the gradients that passes wrote, and saves the new adapter and optimizer state.

import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { loadPeft } from "../../model/lora/peft.ts";
import type { UpdateResult, UpdateTask } from "../contract.ts";
import { adamW } from "../gradient/optimizer.ts";
import { meanGradients } from "./gradient-file.ts";
import { loadOptimizerState } from "./optimizer-state.ts";
import { parametersOf } from "./pass/lora-sites.ts";
import { saveStep } from "./run-task.ts";

export async function runUpdate(task: UpdateTask): Promise<UpdateResult> {
  const adapter = loadPeft(task.adapter, readModelConfig(task.baseModel));
  const params = parametersOf(adapter);
  const gradients = meanGradients(task.gradients, params);
  const state = loadOptimizerState(task.optimizerState, params, "run");
  const update = adamW.update(params, gradients, state, task.optimizer);
  if (![...update.params.values()].every((values) => values.every(Number.isFinite))) {
    const { learningRate } = task.optimizer;
    throw new Error(`the weights are not finite after the step; the learning rate (${learningRate}) may be too large`);
  }
  saveStep(task, adapter, update.params, update.state, "run");
  return { gradNorm: update.gradNorm };
}
