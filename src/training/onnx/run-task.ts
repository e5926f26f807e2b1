// Runs a trainer task: loads the adapter, precomputes what the objective needs, takes the gradient steps and saves the
// result. The same task on the same files gives the same bits.

import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import type { LinearName } from "../../model/families/tensor-names.ts";
import { createAdapter, eachPair, type LoraAdapter, type LoraPair } from "../../model/lora/lora-adapter.ts";
import { loadPeft, savePeft } from "../../model/lora/peft.ts";
import { OPTIMIZER_FILE, type StepMetrics, type TaskModel, type TrainerResult, type TrainerTask } from "../contract.ts";
import { type AdamState, adamW, type NamedTensors } from "../gradient/optimizer.ts";
import { readBatch } from "./batch.ts";
import { gradientStep, logprobsOf, type PassOptions } from "./gradient-step.ts";
import { layOut, type RowSequence } from "./packing/micro-batch.ts";
import { parameterName, parametersOf } from "./pass/lora-sites.ts";
import type { Between, TrainableModel } from "./pass/trainable-model.ts";
import { loadOptimizerState, type OptimizerKind, saveOptimizerState } from "./tensor-files.ts";

// Ends a task before anything is saved when its numbers are not finite, and names the likely cause. Each gradient step
// shows whether the weights of the one before work. The last weights are tried on a few tokens.

/** Number of tokens that the trained weights are tried on. */
const FEW = 16;

/** `step`: index in the task. */
function checkStep(metrics: StepMetrics, step: number, task: TrainerTask): void {
  if (Object.values(metrics).every(Number.isFinite)) return;
  const causes = [...(step > 0 ? [learningRate(task, step - 1)] : []), ...options(task)];
  const advice =
    causes.length > 0 ? `${causes.join(" or ")} may be too large` : "the step it starts from may be damaged";
  throw new Error(`the loss or its gradient is not finite in gradient step ${step + 1}; ${advice}`);
}

/** The model must be set to the trained weights. */
async function checkTrained(
  model: TrainableModel,
  { ids }: RowSequence,
  task: TrainerTask,
  between: Between,
): Promise<void> {
  const some = ids.subarray(0, FEW);
  const predicting = Int32Array.from({ length: some.length - 1 }, (_, p) => p);
  const batch = layOut([{ shared: 0, members: [{ index: 0, ids: some, predicting, targets: some.subarray(1) }] }]);
  const { logprobs } = await model.forward(batch, "nothing", between);
  if (logprobs.every(Number.isFinite)) return;
  const cause = learningRate(task, task.steps.length - 1);
  throw new Error(`the outputs of the model are not finite after the last gradient step; ${cause} may be too large`);
}

/** The settings that changed the weights in this step. */
function learningRate({ steps, optimizer: { weightDecay } }: TrainerTask, step: number): string {
  const { learningRate } = steps[step]!;
  const rate = `the learning rate (${learningRate})`;
  // such a decay removes more than the whole weight
  return learningRate * weightDecay > 1 ? `${rate} or weight_decay (${weightDecay})` : rate;
}

/** Other settings that multiply the loss without a bound. */
function options({ objective }: TrainerTask): string[] {
  if (objective.kind !== "policy") return [];
  const { tau, klPenaltyCoef } = objective.loss;
  return [
    ...(tau === null ? [] : [`alt_k2_tau (${tau})`]),
    ...(klPenaltyCoef > 0 ? [`kl_penalty_coef (${klPenaltyCoef})`] : []),
  ];
}

export interface ModelHooks {
  /** Called between layers; throws to end the task. */
  between: Between;
  /** Returns the model to train, ready for adapters of this rank. */
  modelFor(task: TaskModel, rank: number): Promise<TrainableModel>;
}

export interface TaskHooks extends ModelHooks {
  onStep(metrics: StepMetrics): void;
}

export async function runTask(task: TrainerTask, hooks: TaskHooks): Promise<TrainerResult> {
  const start = performance.now();
  const config = readModelConfig(task.baseModel);
  const adapter = loadPeft(task.adapter, config);
  const model = await hooks.modelFor(task, adapter.rank);
  const sequences = await readBatch(task.batch);
  const options = { model, sequences, maxBytes: task.activationBytes, between: hooks.between };
  await precompute(task, adapter, options);
  let tokens = 0;
  let params = parametersOf(adapter);
  let state = loadOptimizerState(task.optimizerState, params, task.objective.kind);
  if (task.tokenNumbers !== null) writeFileSync(task.tokenNumbers, "", { mode: 0o600 });
  for (const [i, { from, to, learningRate }] of task.steps.entries()) {
    model.setParameters(params, adapter.scale);
    const passes = { ...options, sequences: sequences.slice(from, to) };
    const step = await gradientStep(passes, task.objective, params);
    tokens += step.rows;
    const update = adamW.update(params, step.gradients, state, { ...task.optimizer, learningRate });
    ({ params, state } = update);
    const sampler = i === 0 ? step.samplerDifference : {};
    const metrics = {
      ...step.metrics,
      ...sampler,
      grad_norm: update.gradNorm,
      learning_rate: learningRate,
      gradient_step: i + 1,
    };
    checkStep(metrics, i, task);
    if (task.tokenNumbers !== null) appendFileSync(task.tokenNumbers, new Uint8Array(step.tokens.values.buffer));
    hooks.onStep(metrics);
  }
  model.setParameters(params, adapter.scale);
  await checkTrained(model, sequences[0]!, task, hooks.between);
  saveStep(task, adapter, params, state, task.objective.kind);
  const seconds = (performance.now() - start) / 1000;
  return { tokens, seconds, peakBytes: process.resourceUsage().maxRSS * 1024, gpus: 0 };
}

/** Writes the new adapter and the optimizer's state to the task's output folder. */
export function saveStep(
  { baseModel, output }: Pick<TrainerTask, "baseModel" | "output">,
  adapter: LoraAdapter,
  params: NamedTensors,
  state: AdamState,
  kind: OptimizerKind,
): void {
  const config = readModelConfig(baseModel);
  // the name of the checkpoint's folder: an adapter must not contain paths of this machine
  const name = baseModel.split(/[\\/]/).filter(Boolean).at(-1) ?? baseModel;
  savePeft(output, withParameters(adapter, params, config), config, { baseModel: name });
  saveOptimizerState(join(output, OPTIMIZER_FILE), state, kind);
}

/** Computes the log-probabilities of the starting weights and of the reference policy, if the objective needs them. */
async function precompute(task: TrainerTask, adapter: LoraAdapter, options: PassOptions): Promise<void> {
  if (task.objective.kind !== "policy") return;
  const { model, sequences } = options;
  const { precalculateLogprobs, reference } = task.objective;
  const passes: { key: "precalculated" | "reference"; policy: LoraAdapter | null }[] = [];
  if (precalculateLogprobs) passes.push({ key: "precalculated", policy: adapter });
  if (reference !== null) {
    passes.push({ key: "reference", policy: reference === "base" ? null : loadPeft(reference, model.config) });
  }
  for (const { key, policy } of passes) {
    const params = parametersOf(policy ?? adapter);
    // without its scale an adapter is the base model
    model.setParameters(params, policy?.scale ?? 0);
    const logprobs = await logprobsOf(options);
    for (const sequence of sequences) sequence[key] = logprobs.get(sequence.index)!;
  }
}

function withParameters(adapter: LoraAdapter, params: NamedTensors, config: TrainableModel["config"]): LoraAdapter {
  const layers: Partial<Record<LinearName, LoraPair>>[] = adapter.layers.map(() => ({}));
  for (const { layer, name } of eachPair(adapter.layers)) {
    const [a, b] = [params.get(parameterName(layer, name, "a"))!, params.get(parameterName(layer, name, "b"))!];
    layers[layer]![name] = { a, b };
  }
  const { rank, alpha, rankStabilised } = adapter;
  return createAdapter(config, { rank, alpha, rankStabilised, layers });
}
