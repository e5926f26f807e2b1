// Training's records as clients see them: snake_case, with the fields every client of such services expects and a few
// more that they ignore.

import type { JobEvent } from "../../store/event-table.ts";
import type { JobRecord } from "../../store/job-table.ts";
import type { ModelRecord, StepRecord } from "../../store/model-table.ts";
import type { JobReport } from "../../training/job-work.ts";
import { artifactName } from "../../training/policies.ts";
import type { PreparedJob } from "../../training/prepare.ts";
import type { ExampleReport, PreparedSft } from "../../training/prepare-sft.ts";
import type { TokenSequence } from "../../training/token-sequence.ts";
import type { TrajectoryReport } from "../../training/verdict.ts";

export function presentModel(model: ModelRecord) {
  return {
    id: model.id,
    entity: model.entity,
    project: model.project,
    name: model.name,
    base_model: model.baseModel,
    run_id: null,
    created_at: model.createdAt,
    inference_name: artifactName(model),
  };
}

export function presentStep(step: StepRecord) {
  return { id: step.id, step: step.step, metrics: step.metrics, created_at: step.createdAt };
}

/** `withReport`: also what became of every trajectory. */
export function presentJob(job: JobRecord, withReport: boolean) {
  return {
    id: job.id,
    model_id: job.modelId,
    status: job.status,
    progress: job.progress,
    error_message: job.errorMessage,
    training_start: job.trainingStart,
    training_end: job.trainingEnd,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
    kind: job.kind,
    from_step: job.fromStep,
    step: job.toStep,
    ...(withReport ? { report: job.report === null ? null : presentReport(JSON.parse(job.report) as JobReport) } : {}),
  };
}

export function presentEvent({ id, type, data, createdAt }: JobEvent) {
  return { id, type, data, created_at: createdAt };
}

export function presentPreview(prepared: PreparedJob, modelId: string, step: number) {
  return {
    object: "training_job.preview",
    dry_run: true,
    model_id: modelId,
    from_step: step,
    num_sequences: prepared.sequences.length,
    metrics: prepared.metrics,
    trajectories: prepared.report.map((report, i) => ({
      ...presentVerdict(report),
      ...presentTokens(prepared.tokenised[i]!),
    })),
  };
}

export function presentSftPreview({ sequences, report }: PreparedSft, modelId: string, step: number) {
  const ofExample: TokenSequence[][] = report.map(() => []);
  for (const sequence of sequences) ofExample[sequence.example]!.push(sequence);
  return {
    object: "training_job.preview",
    dry_run: true,
    model_id: modelId,
    from_step: step,
    num_sequences: sequences.length,
    examples: report.map((entry, i) => ({ ...presentExample(entry), ...presentTokens(ofExample[i]!) })),
  };
}

function presentTokens(tokenised: readonly TokenSequence[]) {
  const sequences = tokenised.map(({ ids, mask, oldLogprobs }) => ({
    tokens: ids,
    mask,
    logprobs: oldLogprobs.map((value) => (Number.isNaN(value) ? null : value)),
  }));
  return {
    tokens: sequences.flatMap(({ tokens }) => tokens),
    mask: sequences.flatMap(({ mask }) => mask),
    sequences,
  };
}

function presentReport({ trajectories, examples, totals, usage }: JobReport) {
  return {
    ...(trajectories ? { trajectories: trajectories.map(presentVerdict) } : {}),
    ...(examples ? { examples: examples.map(presentExample) } : {}),
    totals,
    usage: usage ? { tokens: usage.tokens, seconds: usage.seconds, peak_bytes: usage.peakBytes } : null,
  };
}

function presentVerdict(report: TrajectoryReport) {
  return {
    group: report.group,
    trajectory: report.trajectory,
    status: report.status,
    /** The verdict once more for those that are left out, with a sentence about it. */
    reason: report.status === "trained" ? null : report.status,
    message: report.reason,
    reward: report.reward,
    advantage: report.advantage,
    num_sequences: report.sequences,
    num_tokens: report.tokens,
    num_trainable_tokens: report.trainableTokens,
  };
}

function presentExample(report: ExampleReport) {
  return {
    example: report.example,
    status: report.status,
    reason: report.status === "trained" ? null : report.status,
    message: report.reason,
    num_tokens: report.tokens,
    num_trainable_tokens: report.trainableTokens,
  };
}
