// The messages between the server and a trainer process, over the IPC channel of the child.

import type { StepMetrics, TrainerResult, TrainerTask } from "./contract.ts";

export type ToTrainer = { type: "train"; task: TrainerTask } | { type: "cancel" };

export type FromTrainer =
  | { type: "step"; metrics: StepMetrics }
  | { type: "done"; result: TrainerResult }
  | { type: "failed"; message: string }
  | { type: "cancelled" };
