// Numbers that are no numbers end a task before anything is saved, with what may have made them so. A gradient step is
// computed with the weights of the one before, so the last one's are tried out on a few tokens.

import type { StepMetrics, TrainerTask } from "../contract.ts";
import { layOut, type RowSequence } from "./packing/micro-batch.ts";
import type { Between, TrainableModel } from "./pass/trainable-model.ts";

/** Tokens that trained weights are tried out on. */
const FEW = 16;

/** `step`: its index in the task. */
export function checkStep(metrics: StepMetrics, step: number, task: TrainerTask): void {
  if (Object.values(metrics).every(Number.isFinite)) return;
  const causes = [...(step > 0 ? [learningRate(task, step - 1)] : []), ...options(task)];
  const advice =
    causes.length > 0 ? `${causes.join(" or ")} may be too large` : "the step it starts from may be damaged";
  throw new Error(`the loss or its gradient is not finite in gradient step ${step + 1}; ${advice}`);
}

/** The model has the trained weights. */
export async function checkTrained(
  model: TrainableModel,
  { ids }: RowSequence,
  task: TrainerTask,
  between: Between,
): Promise<void> {
  const some = ids.subarray(0, FEW);
  const predicting = Int32Array.from({ length: some.length - 1 }, (_, p) => p);
  const batch = layOut([{ shared: 0, members: [{ index: 0, ids: some, predicting }] }]);
  const { logprobs } = await model.forward(batch, "nothing", between);
  if (logprobs.every(Number.isFinite)) return;
  const cause = learningRate(task, task.steps.length - 1);
  throw new Error(`the model computes no numbers any more after the last gradient step; ${cause} may be too large`);
}

/** What was applied to the weights in this step. */
function learningRate({ steps, optimizer: { weightDecay } }: TrainerTask, step: number): string {
  const { learningRate } = steps[step]!;
  const rate = `the learning rate (${learningRate})`;
  // decays by more than all there is
  return learningRate * weightDecay > 1 ? `${rate} or weight_decay (${weightDecay})` : rate;
}

/** What else multiplies into the loss without a bound. */
function options({ objective }: TrainerTask): string[] {
  if (objective.kind !== "policy") return [];
  const { tau, klPenaltyCoef } = objective.loss;
  return [
    ...(tau === null ? [] : [`alt_k2_tau (${tau})`]),
    ...(klPenaltyCoef > 0 ? [`kl_penalty_coef (${klPenaltyCoef})`] : []),
  ];
}
