// The Trainer contract: a checkpoint, a policy step and tokenised sequences in; metrics per gradient step and a PEFT
// adapter with its optimiser state out. The embedded ONNX trainer implements it in a child process, the fake of the
// tests too; a remote trainer could. Everything is plain data and files, so that it can cross a process boundary.

import type { WeightType } from "../model/linear/linear.ts";
import type { LossConfig, OptimizerConfig } from "./config.ts";

/** One line of the batch file. Log-probabilities: null = unknown. */
export interface BatchSequence {
  ids: number[];
  /** 1 where the token is trained. */
  mask: (0 | 1)[];
  /** As the sampler reported them, parallel to ids. */
  oldLogprobs: (number | null)[];
  advantage: number;
  weight: number;
  /** Sequences of one group share a prompt; -1 = no group. */
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
      /** Recompute the old log-probabilities with the weights the job starts from. */
      precalculateLogprobs: boolean;
      /** PEFT folder the KL penalty compares with; "base" = the base model; null = no penalty. */
      reference: string | "base" | null;
    }
  /** Mean negative log-likelihood over the trained tokens of a gradient step. */
  | { kind: "cross_entropy" };

export interface TrainerTask {
  /** Checkpoint folder of the base model. */
  baseModel: string;
  /** Base weights as they are served, so that both sides compute the same numbers. */
  weights: WeightType;
  /** Positions per block of the serving cache: over rounded weights attention is summed block by block in the same order. */
  positionsPerBlock: number;
  /** PEFT folder of the step to train from. */
  adapter: string;
  /** Optimiser state to go on from, unless it belongs to another kind of objective; null = start anew. */
  optimizerState: string | null;
  /** One BatchSequence as JSON per line. */
  batch: string;
  steps: GradientStepPlan[];
  objective: Objective;
  optimizer: OptimizerConfig;
  /** Folder to make: adapter_config.json, adapter_model.safetensors and OPTIMIZER_FILE. Its parent exists. */
  output: string;
  threads: number;
  /** Bound for activations. Larger micro-batches are split; a sequence that does not fit alone fails the task. */
  activationBytes: number;
}

export const OPTIMIZER_FILE = "optimizer.safetensors";

/** Flat and finite: goes into the event as it is. No timings, so that a repeated job gives the same events. */
export type StepMetrics = Record<string, number>;

export interface TrainerResult {
  /** Tokens run forward and backward, prompts included. */
  tokens: number;
  seconds: number;
  peakBytes: number;
}

export interface Trainer {
  /**
   * Runs one task. Rejects with a message for the user; rejects with the signal's reason soon after it aborts (within a
   * gradient step). `output` is complete only when this resolves. `onStep` is called once per planned step, in order.
   */
  train(task: TrainerTask, onStep: (metrics: StepMetrics) => void, signal: AbortSignal): Promise<TrainerResult>;
  close(): Promise<void>;
}
