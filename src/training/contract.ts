// The Trainer contract. In: a checkpoint, an adapter and tokenised sequences. Out: metrics per gradient step, and a new
// PEFT adapter with its optimizer state. Everything is plain data and files, so a trainer can run in another process.

import type { WeightType } from "../model/linear/linear.ts";
import type { LossConfig, OptimizerConfig } from "./config.ts";

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

export interface TrainerTask {
  /** Checkpoint folder of the base model. */
  baseModel: string;
  /** The weight type that is served, so that sampler and trainer compute the same numbers. */
  weights: WeightType;
  /** Positions per block of the serving cache. Over rounded weights, attention is summed in the same blocks. */
  positionsPerBlock: number;
  /** PEFT folder of the step to train from. */
  adapter: string;
  /** Optimizer state to continue, unless it belongs to another kind of objective; null = a new state. */
  optimizerState: string | null;
  /** File with one BatchSequence as JSON per line. */
  batch: string;
  steps: GradientStepPlan[];
  objective: Objective;
  optimizer: OptimizerConfig;
  /** Folder to create, with adapter_config.json, adapter_model.safetensors and OPTIMIZER_FILE. Its parent exists. */
  output: string;
  threads: number;
  /** Bound for activations. Larger micro-batches are split; a sequence that does not fit alone fails the task. */
  activationBytes: number;
}

export const OPTIMIZER_FILE = "optimizer.safetensors";

/** Finite numbers, sent as they are in an event. No timings, so that a repeated job gives the same events. */
export type StepMetrics = Record<string, number>;

export interface TrainerResult {
  /** Tokens that went forward and backward, including prompts. */
  tokens: number;
  seconds: number;
  peakBytes: number;
}

export interface Trainer {
  /**
   * Runs one task. Calls `onStep` once per planned step, in order. `output` is complete only when this resolves.
   * Rejects with a message for the user, or with the signal's reason within a gradient step after it aborts.
   */
  train(task: TrainerTask, onStep: (metrics: StepMetrics) => void, signal: AbortSignal): Promise<TrainerResult>;
  close(): Promise<void>;
}
