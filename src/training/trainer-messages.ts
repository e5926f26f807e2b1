// The messages between the server and a trainer process.

import type {
  LimitsTask,
  PassResult,
  PassTask,
  StepMetrics,
  TrainerLimits,
  TrainerResult,
  TrainerTask,
  UpdateResult,
  UpdateTask,
} from "./contract.ts";

/** What a trainer process can do: the task that each kind of work takes, and its result. */
export interface TrainerWork {
  limits: { task: LimitsTask; result: TrainerLimits };
  train: { task: TrainerTask; result: TrainerResult };
  pass: { task: PassTask; result: PassResult };
  update: { task: UpdateTask; result: UpdateResult };
}

export type WorkMessage = {
  [Kind in keyof TrainerWork]: { type: Kind; task: TrainerWork[Kind]["task"] };
}[keyof TrainerWork];

export type ToTrainer = WorkMessage | { type: "cancel" };

export type FromTrainer =
  | { type: "step"; metrics: StepMetrics }
  | { type: "done"; result: TrainerWork[keyof TrainerWork]["result"] }
  | { type: "failed"; message: string }
  | { type: "cancelled" };
