// The operations of a run: what a client commands, what is stored about it, and what it results in. A run's version is
// the number of its newest step.

import type { JobRecord, OperationKind } from "../../store/tables/jobs.ts";
import type { OptimizerConfig } from "../config.ts";
import type { PassResult } from "../contract.ts";
import type { NamedLoss } from "../gradient/named-loss.ts";

/** The project of the models of runs, and of models that runs publish under new names. */
export const RUNS_PROJECT = "training-runs";

/** A step of any model of the same owner. */
export interface CheckpointId {
  modelId: string;
  step: number;
}

export interface PassCommand {
  kind: "forward" | "forward_backward";
  loss: NamedLoss;
  /** Whether the result has the log-probability of every target. */
  wantsLogprobs: boolean;
  /** Whether the result repeats the token ids of every matrix. */
  wantsTokenIds: boolean;
  /** Tokens and targets per token of each matrix, in the order of the batch. */
  matrices: { id: string; shape: [number, number] }[];
}

export type Command =
  | PassCommand
  | { kind: "optim_step"; optimizer: OptimizerConfig }
  | { kind: "save_weights_for_sampler"; target: "active" | "saved_generation"; alias: string }
  | { kind: "save_state" }
  | { kind: "load_state"; source: CheckpointId; withOptimizer: boolean };

export interface Operation {
  requestId: string;
  sequenceId: number;
  /** The version that it works on. */
  parentVersion: number;
  /** The version that it makes; null = none. */
  outputVersion: number | null;
  command: Command;
}

export interface PassOutcome extends PassResult {
  /** Base64 of float32 values, one per target; empty unless wanted. */
  logprobs: { id: string; shape: [number, number]; data: string }[];
  /** Empty unless wanted. */
  tokenIds: { id: string; ids: number[] }[];
}

export interface OptimStepOutcome {
  contributions: string[];
  gradNorm: number;
  learningRate: number;
}

export interface PublicationOutcome {
  /** The published step, as "entity/project/name:stepN". */
  generation: string;
}

export function isPass(command: Command): command is PassCommand {
  return command.kind === "forward" || command.kind === "forward_backward";
}

/** Whether it makes a new version. */
export function isTransition(kind: OperationKind): boolean {
  return kind === "optim_step" || kind === "load_state";
}

export function operationOf(job: JobRecord): Operation {
  return JSON.parse(job.config) as Operation;
}
