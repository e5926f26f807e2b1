// Ends a task before anything is saved when its numbers are not finite, and names the likely cause. Each gradient step
// shows whether the weights of the one before work. The last weights are tried on a few tokens.

import type { StepMetrics, TrainerTask } from "../contract.ts";
import { layOut, type RowSequence } from "./packing/micro-batch.ts";
import type { Between, TrainableModel } from "./pass/trainable-model.ts";

/** Number of tokens that the trained weights are tried on. */
const FEW = 16;

/** `step`: index in the task. */
export function checkStep(metrics: StepMetrics, step: number, task: TrainerTask): void {
  if (Object.values(metrics).every(Number.isFinite)) return;
  const causes = [...(step > 0 ? [learningRate(task, step - 1)] : []), ...options(task)];
  const advice =
    causes.length > 0 ? `${causes.join(" or ")} may be too large` : "the step it starts from may be damaged";
  throw new Error(`the loss or its gradient is not finite in gradient step ${step + 1}; ${advice}`);
}

/** The model must be set to the trained weights. */
export async function checkTrained(
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
