// The Trainer contract. In: a checkpoint, an adapter and tokenised sequences. Out: metrics per gradient step, and a new
// PEFT adapter with its optimizer state. A client may also take a gradient step in two parts: passes that keep their
// gradients, then one optimizer step. Everything is plain data and files, so a trainer can run in another process.

import type { WeightType } from "../model/linear/linear.ts";
import type { LossConfig, OptimizerConfig } from "./config.ts";
import type { NamedLoss } from "./gradient/algorithms.ts";

/** One line of the batch file. */
export interface BatchSequence {
  ids: number[];
  /** 1 where the token is trained. */
  mask: (0 | 1)[];
  /** One log-probability per id, as the sampler reported it; null = unknown. */
  oldLogprobs: (number | null)[];
  advantage: number;
  weight: number;
  /** Sequences with the same number share a prompt; -1 = no group. */
  group: number;
}

export interface GradientStepPlan {
  /** Sequences [from, to) of the batch file. */
  from: number;
  to: number;
  learningRate: number;
}

export type Objective =
  | {
      kind: "policy";
      loss: LossConfig;
      /** Recomputes the old log-probabilities with the weights that the job starts from. */
      precalculateLogprobs: boolean;
      /** PEFT folder that the KL penalty compares with; "base" = the base model; null = no penalty. */
      reference: string | "base" | null;
    }
  /** Mean negative log-likelihood over the trained tokens of a gradient step. */
  | { kind: "cross_entropy" };

/** bfloat16 is what engines on GPUs serve; the embedded engine and its trainer have no such type. */
export type TrainedWeights = WeightType | "bfloat16";

/** The weights that a task computes with, and its limits. */
export interface TaskModel {
  /** Checkpoint folder of the base model. */
  baseModel: string;
  /** The weight type that is served, so that sampler and trainer compute the same numbers. */
  weights: TrainedWeights;
  /** Positions per block of the serving cache. Over rounded weights, attention is summed in the same blocks. */
  positionsPerBlock: number;
  /** The context that is served: it decides which factors LongRoPE uses. */
  context?: number;
  /** PEFT folder of the step to train from. */
  adapter: string;
  threads: number;
  /** Bound for activations. Larger micro-batches are split; a sequence that does not fit alone fails the task. */
  activationBytes: number;
}

/** What the limits of a trainer follow from. */
export interface LimitsTask extends Pick<TaskModel, "baseModel" | "weights" | "positionsPerBlock" | "activationBytes"> {
  /** The longest sequence that is served, in tokens. */
  maxSequenceLength: number;
  /** LoRA rank of new adapters. */
  rank: number;
}

export interface TrainerLimits {
  /** Longest sequence that fits the memory for training, in tokens; 0 when nothing fits. */
  maxTrainedLength: number;
}

export interface TrainerTask extends TaskModel {
  /** Optimizer state to continue, unless it belongs to another kind of objective; null = a new state. */
  optimizerState: string | null;
  /** File with one BatchSequence as JSON per line. */
  batch: string;
  steps: GradientStepPlan[];
  objective: Objective;
  optimizer: OptimizerConfig;
  /** Folder to create, with adapter_config.json, adapter_model.safetensors and OPTIMIZER_FILE. Its parent exists. */
  output: string;
  /** File for what was computed for every trained token (gradient/token-numbers.ts); null = not wanted. */
  tokenNumbers: string | null;
}

/** One line of a pass's batch file: a sequence with values for each of its T positions and K targets per position. */
export interface TokenMatrix {
  id: string;
  /** Matrices with the same number may share the computation of their beginning; -1 = none. */
  group: number;
  ids: number[];
  /** K. */
  width: number;
  /** [T, K], row by row, as the following three. The log-probability of each target is read at its position. */
  targets: number[];
  /** null = 1 where the advantage is not 0. */
  weights: number[] | null;
  advantages: number[] | null;
  behaviorLogprobs: number[] | null;
  /** The version of the policy that sampled each position; null = unknown. */
  policyVersions: number[] | null;
}

/** A pass over a batch for its loss and gradients. It leaves the weights as they are. */
export interface PassTask extends TaskModel {
  /** File with one TokenMatrix as JSON per line. */
  batch: string;
  loss: NamedLoss;
  /** File for the gradients of the summed loss; null = forward only. */
  gradients: string | null;
  /** File for the log-probabilities of all targets, as float32 in the order of the batch; null = not wanted. */
  logprobs: string | null;
}

export interface PassResult {
  /** Sum over all targets. */
  loss: number;
  /** Positions with a target that counts in the loss. */
  activePositions: number;
  /** The same by policy version, ascending; null unless every active position has one. */
  byPolicyVersion: { version: number; positions: number }[] | null;
  /** Rows that went forward. Sequences that begin alike share rows. */
  rows: number;
}

/** One optimizer step with the gradients of passes. */
export interface UpdateTask extends TaskModel {
  /** Files that passes wrote. Their sum is divided by the active positions of all of them. */
  gradients: string[];
  optimizerState: string | null;
  optimizer: OptimizerConfig;
  /** As in TrainerTask. */
  output: string;
}

export interface UpdateResult {
  /** Before clipping. */
  gradNorm: number;
}

export const OPTIMIZER_FILE = "optimizer.safetensors";

/**
 * Finite numbers, sent as they are in an event. No timings, so that a repeated job gives the same events. The first step
 * of a policy objective also tells how far the sampler is from the trainer (gradient/loss-diagnostics.ts).
 */
export type StepMetrics = Record<string, number>;

export interface TrainerResult {
  /** Tokens that went forward and backward, including prompts. */
  tokens: number;
  seconds: number;
  peakBytes: number;
  /** GPUs that shared the work; 0 = it ran on processors. */
  gpus: number;
}

export interface Trainer {
  /** Rejects with a message for the user if the base model cannot be trained at all. */
  limits(task: LimitsTask): Promise<TrainerLimits>;
  /**
   * Runs one task. Calls `onStep` once per planned step, in order. `output` is complete only when this resolves.
   * Rejects with a message for the user, or with the signal's reason within a gradient step after it aborts.
   */
  train(task: TrainerTask, onStep: (metrics: StepMetrics) => void, signal: AbortSignal): Promise<TrainerResult>;
  pass(task: PassTask, signal: AbortSignal): Promise<PassResult>;
  update(task: UpdateTask, signal: AbortSignal): Promise<UpdateResult>;
  close(): Promise<void>;
}
