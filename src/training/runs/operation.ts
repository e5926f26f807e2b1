// The operations of a run: what a client commands, what is stored about it, and what it results in. A run's version is
// the number of its newest step.
import type { JobRecord, OperationKind } from "../../store/tables/jobs.ts";
import type { OptimizerConfig } from "../config.ts";
import type { PassResult } from "../contract.ts";
import type { NamedLoss } from "../gradient/algorithms.ts";

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

function isPass(command: Command): command is PassCommand {
  return command.kind === "forward" || command.kind === "forward_backward";
}

/** Whether it makes a new version. */
export function isTransition(kind: OperationKind): boolean {
  return kind === "optim_step" || kind === "load_state";
}

export function operationOf(job: JobRecord): Operation {
  return JSON.parse(job.config) as Operation;
}

// What an operation of a run will leave on disk, at most: set aside when it is accepted.

/** Base64 of a float32 value. */
const RESULT_BYTES = 16 / 3;
const VALUE_BYTES = 4;

/** A token id and a comma. */
const ID_BYTES = 8;

/** What the result of a pass has beside lists, and a matrix beside its id. */
const OTHER_BYTES = 1024;
const MATRIX_BYTES = 128;

/** `step`: what a step takes. `gradients`: those of one pass. */
export function operationBytes(command: Command, { step, gradients }: { step: number; gradients: number }): number {
  if (isPass(command)) return passBytes(command) + (command.kind === "forward_backward" ? gradients : 0);
  return command.kind === "save_state" ? 0 : step;
}

/** The file of log-probabilities, and the result. */
function passBytes({ matrices, wantsLogprobs, wantsTokenIds }: PassCommand): number {
  let bytes = OTHER_BYTES;
  for (const { id, shape } of matrices) {
    bytes += 2 * (MATRIX_BYTES + 3 * id.length);
    if (wantsLogprobs) bytes += Math.ceil((VALUE_BYTES + RESULT_BYTES) * shape[0] * shape[1]);
    if (wantsTokenIds) bytes += ID_BYTES * shape[0];
  }
  return bytes;
}
