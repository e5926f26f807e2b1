// What parent and trainer process say to each other over the child's IPC channel.

import type { StepMetrics, TrainerResult, TrainerTask } from "./contract.ts";

export type ToTrainer = { type: "train"; task: TrainerTask } | { type: "cancel" };

export type FromTrainer =
  | { type: "step"; metrics: StepMetrics }
  | { type: "done"; result: TrainerResult }
  | { type: "failed"; message: string }
  | { type: "cancelled" };
