// Training records as clients see them, in snake_case. They have the fields that clients of such services expect, plus
// a few that those clients ignore.

import { givingWay } from "../../pacing/turns.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { ModelSummary } from "../../store/tables/model-summaries.ts";
import type { ModelRecord, StepRecord } from "../../store/tables/models.ts";
import type { PreparedJob } from "../../training/data/prepare.ts";
import type { ExampleReport, PreparedSft } from "../../training/data/prepare-sft.ts";
import type { TokenSequence } from "../../training/data/token-sequence.ts";
import type { TrajectoryReport } from "../../training/data/verdict.ts";
import type { JobReport, JobTotals } from "../../training/jobs/job-work.ts";
import { artifactName } from "../../training/policies.ts";
import { presentConfig } from "./job-options.ts";

/** `withWorkspace`: for an admin, who sees models of several. */
export function presentModel(model: ModelRecord, summary: ModelSummary, withWorkspace: boolean) {
  const { lastJob, workspaceName } = summary;
  return {
    id: model.id,
    entity: model.entity,
    project: model.project,
    name: model.name,
    base_model: model.baseModel,
    run_id: null,
    created_at: model.createdAt,
    inference_name: artifactName(model),
    latest_step: summary.latestStep,
    lora_rank: model.loraRank,
    lora_alpha: model.loraAlpha,
    bytes: summary.bytes,
    open_jobs: summary.openJobs,
    recent_rewards: summary.recentRewards,
    forked_from: model.forkedFrom === null ? null : { model_id: model.forkedFrom, step: model.forkedStep },
    last_job: lastJob && {
      id: lastJob.id,
      status: lastJob.status,
      progress: lastJob.progress,
      updated_at: lastJob.updatedAt,
      error_message: lastJob.errorMessage,
    },
    ...(withWorkspace ? { workspace: workspaceName } : {}),
  };
}

export function presentStep(step: StepRecord, isLoaded: boolean) {
  return {
    ...{ id: step.id, step: step.step, metrics: step.metrics, created_at: step.createdAt },
    ...{ job_id: step.jobId, bytes: step.bytes, digest: step.digest, origin: step.origin, loaded: isLoaded },
  };
}

/** `withReport` adds the outcome of every trajectory. */
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
    config: presentConfig(job),
    attempts: job.attempts,
    totals: job.totals === null ? null : presentTotals(JSON.parse(job.totals) as JobTotals),
    gradient_steps: presentGradientSteps(job),
    ...(withReport ? { report: job.report === null ? null : presentReport(JSON.parse(job.report) as JobReport) } : {}),
  };
}

/** Progress counts gradient steps, so it tells how many are done. */
export function presentGradientSteps({
  progress,
  gradientSteps: total,
}: Pick<JobRecord, "progress" | "gradientSteps">) {
  return total === null ? null : { done: Math.round((progress ?? 0) * total), total };
}

function presentTotals({ byStatus, trainableTokens, trainableGroups, ...totals }: JobTotals) {
  const counts = { trainable_tokens: trainableTokens, trainable_groups: trainableGroups ?? null };
  return { ...totals, by_status: byStatus, ...counts };
}

export function presentEvent({ id, type, data, createdAt }: JobEvent) {
  return { id, type, data, created_at: createdAt };
}

/** The reply to `dry_run`, in pieces of JSON: it may be tens of megabytes, which take a second to write. */
export function previewJson(prepared: PreparedJob, modelId: string, step: number): AsyncGenerator<string> {
  const { sequences, metrics, report, tokenised } = prepared;
  const head = { ...previewHead(modelId, step, sequences.length), metrics };
  return jsonWithList(head, "trajectories", report, (entry, i) => ({
    ...presentVerdict(entry),
    ...presentTokens(tokenised[i]!),
  }));
}

export function sftPreviewJson(prepared: PreparedSft, modelId: string, step: number): AsyncGenerator<string> {
  const { sequences, report, tokenised } = prepared;
  return jsonWithList(previewHead(modelId, step, sequences.length), "examples", report, (entry, i) => ({
    ...presentExample(entry),
    ...presentTokens(tokenised[i]!),
  }));
}

function previewHead(modelId: string, step: number, sequences: number) {
  return {
    object: "training_job.preview",
    dry_run: true,
    model_id: modelId,
    from_step: step,
    num_sequences: sequences,
  };
}

/** `head` with a list as one more field. */
async function* jsonWithList<T>(
  head: object,
  key: string,
  items: readonly T[],
  present: (item: T, index: number) => object,
): AsyncGenerator<string> {
  const giveWay = givingWay();
  yield `${JSON.stringify(head).slice(0, -1)},${JSON.stringify(key)}:[`;
  for (const [i, item] of items.entries()) {
    await giveWay();
    yield (i === 0 ? "" : ",") + JSON.stringify(present(item, i));
  }
  yield "]}";
}

function presentTokens(tokenised: readonly TokenSequence[]) {
  return {
    tokens: tokenised.flatMap(({ ids }) => ids),
    mask: tokenised.flatMap(({ mask }) => mask),
    // JSON has no NaN, so it becomes null
    sequences: tokenised.map(({ ids, mask, oldLogprobs }) => ({ tokens: ids, mask, logprobs: oldLogprobs })),
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
    /** For those left out: the verdict again, with a sentence that explains it. */
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
