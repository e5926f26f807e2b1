// What a job should be told although it went well: settings that would have served it better. Each warning is an event
// of the job and a line in the log, once per job.

import type { Objective, StepMetrics, TrainerResult } from "../contract.ts";

export interface JobWarning {
  /** For programs. */
  code: "sampler_differs" | "small_steps";
  message: string;
}

/** Mean difference of log-probabilities. About 0.01 is usual when both round to bfloat16. */
const LARGEST_DIFFERENCE = 0.05;

/**
 * Rows of a gradient step per GPU. With 1,024 an H200 ran models of 1.7 B and 8 B parameters at 40 % of their speed or
 * less, with 2,048 the larger one at 86 % (bench/results/2026-11-17-h200-torch-trainer.md).
 */
const FEWEST_ROWS = 2048;

/** `first`: metrics of the first gradient step. `age`: mean age of the trajectories, in steps. */
export function samplerWarning(first: StepMetrics, objective: Objective, age: number): JobWarning | null {
  const { sampler_logprob_diff_mean: mean = 0, sampler_logprob_diff_max: max = 0 } = first;
  if (mean <= LARGEST_DIFFERENCE || objective.kind !== "policy") return null;
  const settings = [
    ...(objective.precalculateLogprobs ? [] : ["precalculate_logprobs"]),
    ...(objective.loss.truncatedImportanceSampling === null ? ["truncated_importance_sampling"] : []),
  ];
  if (settings.length === 0) return null;
  const old = age > 0 ? ` Part of it is training since then: the trajectories are ${short(age)} steps old.` : "";
  const message =
    `the sampler's log-probabilities differ from the trainer's by ${short(mean)} on average and ${short(max)} at most; ` +
    `set ${settings.join(" and ")}, so that the loss corrects for it.${old}`;
  return { code: "sampler_differs", message };
}

export function smallStepsWarning(
  { tokens: rows, gpus }: TrainerResult,
  steps: number,
  objective: Objective,
): JobWarning | null {
  // a single step has all there is
  if (gpus === 0 || steps < 2) return null;
  const mean = Math.round(rows / steps / gpus);
  if (mean >= FEWEST_ROWS) return null;
  const each = gpus === 1 ? "" : " for each GPU";
  const fix =
    objective.kind === "policy"
      ? "set packed_sequence_length or raise grad_accumulation_sequences"
      : "raise batch_size";
  const message = `its gradient steps have ${mean} rows${each} on average, and a GPU waits below ${FEWEST_ROWS}: ${fix}`;
  return { code: "small_steps", message };
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
