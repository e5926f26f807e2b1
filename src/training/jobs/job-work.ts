// Turns the stored data of a job into work for the trainer: sequences, a plan of gradient steps, the objective, the
// report and the metrics of its events. There is one function per kind of job.

import type { JobRecord, JobTable } from "../../store/tables/jobs.ts";
import type { ModelTable } from "../../store/tables/models.ts";
import type { BaseModel } from "../base-models.ts";
import type { OptimizerConfig, RlConfig, SftConfig } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import type { BatchSequence, GradientStepPlan, Objective } from "../contract.ts";
import { groupCounts, rewardMetrics } from "../data/group-metrics.ts";
import { type PreparedJob, prepareJob } from "../data/prepare.ts";
import { type ExampleReport, type PreparedSft, prepareSft, type SftExample } from "../data/prepare-sft.ts";
import { type TokenSequence, tokenCounts } from "../data/token-sequence.ts";
import type { TrajectoryReport } from "../data/verdict.ts";
import { planRl, planSft, rewardSpreadMultiplier } from "../gradient/gradient-plan.ts";
import type { PreparedRollout, TrainedPlace } from "../records/prepared-record.ts";
import { TrainingError } from "../training-error.ts";
import { readGroups, readInput } from "./job-input.ts";

// Finds the step that the KL penalty of a job compares with. It is looked up when a job is submitted or previewed, so
// that a missing step is reported at once, and again when the job starts.

/**
 * Returns null without a penalty. Step 0 is the base model, in forks too. `currentStep`: the step that the job trains
 * from; earlier jobs may still have to make it. Throws when the reference does not exist.
 */
export async function klReferenceStep(
  config: RlConfig,
  modelId: string,
  currentStep: number,
  modelTable: ModelTable,
): Promise<number | null> {
  if (config.loss.klPenaltyCoef <= 0) return null;
  const { klPenaltyReferenceStep: fixed, klPenaltyStepLag: lag } = config;
  const step = fixed ?? (lag === null ? 0 : await stepsAgo(currentStep - lag, modelId, modelTable));
  if (step === 0 || (await modelTable.hasStep(modelId, step))) return step;
  const newest = (await modelTable.newestStep(modelId))?.step ?? 0;
  if (step > newest && step <= currentStep) return step;
  throw new TrainingError("no_kl_reference", { step });
}

/** The next existing step, where a step was deleted or is older than a fork. */
async function stepsAgo(wanted: number, modelId: string, modelTable: ModelTable): Promise<number> {
  return wanted <= 0 ? 0 : ((await modelTable.firstStepFrom(modelId, wanted)) ?? wanted);
}

export interface JobReport {
  trajectories?: TrajectoryReport[];
  examples?: ExampleReport[];
  totals: Record<string, number>;
  /** Cost of the job; absent until it has run. */
  usage?: { tokens: number; seconds: number; peakBytes: number };
}

export interface JobWork {
  batch: BatchSequence[];
  plan: GradientStepPlan[];
  objective: Objective;
  optimizer: OptimizerConfig;
  report: JobReport;
  /** For the job's record. */
  prepared: { rollouts: PreparedRollout[]; groups: number };
  /** For the gradient_step event of this step of the plan. ART reads the number of steps from `num_sequences`. */
  eventMetrics(index: number): Record<string, number>;
  /** Metrics of the new policy step. */
  stepMetrics: Record<string, number>;
  /** Later jobs use it to scale their learning rates; null = no rewards to compare. */
  rewardStdDev: number | null;
  /** Steps that must not be removed meanwhile, besides the one trained from. */
  usedSteps: number[];
}

/** What a job trains. */
export interface Target {
  base: BaseModel;
  /** The step it continues. */
  currentStep: number;
  signal: AbortSignal;
}

export function workOf(job: JobRecord, context: TrainingContext, target: Target): Promise<JobWork> {
  return job.kind === "rl" ? rlWork(job, context, target) : sftWork(job, context, target);
}

async function rlWork(job: JobRecord, context: TrainingContext, target: Target): Promise<JobWork> {
  const { modelTable, jobTable, workspace } = context;
  const { base, currentStep, signal } = target;
  const config = JSON.parse(job.config) as RlConfig;
  const input = await workspace.fetchInput(job.id, { signal, patient: true });
  const prepared = await prepareJob(readGroups(input), {
    encoder: base.encoder,
    config,
    currentStep,
    ...(await base.limits(signal)),
    preview: false,
    signal,
  });
  const rewards = rewardMetrics(prepared.groups);
  const multiplier = config.scaleLearningRateByRewardStdDev
    ? await spread(job, jobTable, currentStep, rewards.reward_std_dev)
    : 1;
  const totals: Record<string, number> = { ...groupCounts(prepared.groups), ...prepared.metrics };
  const plan = planRl(prepared.sequences, config, multiplier);
  const jobMetrics = { ...rewards, ...totals, num_sequences: plan.length, num_gradient_steps: plan.length };
  const referenceStep = await klReferenceStep(config, job.modelId, currentStep, modelTable);
  return {
    batch: prepared.sequences.map((sequence) => batchSequence(sequence, sequence)),
    plan,
    objective: {
      kind: "policy",
      loss: config.loss,
      precalculateLogprobs: config.precalculateLogprobs,
      reference: await referenceAdapter(referenceStep, job.modelId, context),
    },
    optimizer: config.optimizer,
    report: { trajectories: prepared.report, totals },
    prepared: { rollouts: rolloutsOf(prepared, plan), groups: prepared.groups.length },
    eventMetrics: () => jobMetrics,
    stepMetrics: Object.fromEntries(Object.entries(rewards).map(([name, value]) => [`train/${name}`, value])),
    rewardStdDev: rewards.reward_std_dev ?? null,
    usedSteps: referenceStep ? [referenceStep] : [],
  };
}

async function sftWork(job: JobRecord, { workspace }: TrainingContext, { base, signal }: Target): Promise<JobWork> {
  const config = JSON.parse(job.config) as SftConfig;
  const examples = readInput<SftExample>(await workspace.fetchInput(job.id, { signal, patient: true }));
  const prepared = await prepareSft(examples, base.encoder, config, await base.limits(signal), signal);
  const { sequences, report } = prepared;
  const plan = planSft(
    sequences.map(({ example }) => example),
    config,
  );
  const totals = {
    num_trajectories: report.length,
    num_dropped_trajectories: report.filter(({ status }) => status !== "trained").length,
  };
  const jobMetrics = { ...totals, num_sequences: plan.length, num_gradient_steps: plan.length };
  const examplesOf = ({ from, to }: GradientStepPlan) =>
    new Set(sequences.slice(from, to).map(({ example }) => example)).size;
  return {
    batch: sequences.map((sequence) => batchSequence(sequence, { advantage: 1, weight: 1, group: -1 })),
    plan,
    objective: { kind: "cross_entropy" },
    optimizer: config.optimizer,
    report: { examples: report, totals },
    prepared: { rollouts: preparedExamples(prepared, plan), groups: report.length },
    eventMetrics: (index) => ({ ...jobMetrics, num_trajectories: examplesOf(plan[index]!) }),
    stepMetrics: {},
    rewardStdDev: null,
    usedSteps: [],
  };
}

function rolloutsOf(
  { report, tokenised, sequences }: PreparedJob,
  plan: readonly GradientStepPlan[],
): PreparedRollout[] {
  const place = (of: { group: number; trajectory: number }) => `${of.group}/${of.trajectory}`;
  const weights = new Map(sequences.map((sequence) => [place(sequence), sequence.weight]));
  const placed = places(sequences, plan);
  return report.map(({ group, trajectory, status, reason, advantage, tokens, trainableTokens }, i) => {
    const weight = weights.get(place({ group, trajectory })) ?? 0;
    return { group, status, reason, advantage, weight, tokens, trainableTokens, sequences: placed(tokenised[i]!) };
  });
}

function preparedExamples(
  { report, tokenised, sequences }: PreparedSft,
  plan: readonly GradientStepPlan[],
): PreparedRollout[] {
  const placed = places(sequences, plan);
  return report.map(({ example, ...verdict }, i) => {
    const signal = verdict.status === "trained" ? 1 : 0;
    return { ...verdict, group: example, advantage: signal, weight: signal, sequences: placed(tokenised[i]!) };
  });
}

/** Says where each sequence is trained. `batch`: the sequences in training order. */
function places(
  batch: readonly TokenSequence[],
  plan: readonly GradientStepPlan[],
): (sequences: readonly TokenSequence[]) => PreparedRollout["sequences"] {
  // the batch has copies of the sequences with the same ids
  const found = new Map<readonly number[], TrainedPlace>();
  let row = 0;
  for (const [step, { from, to }] of plan.entries()) {
    const members = batch.slice(from, to);
    const { trainableTokens: stepTokens } = tokenCounts(members);
    for (const { ids, mask } of members) {
      found.set(ids, { firstRow: row, step, stepTokens });
      for (const bit of mask) row += bit;
    }
  }
  return (sequences) => sequences.map((sequence) => ({ ...sequence, trained: found.get(sequence.ids) ?? null }));
}

function batchSequence(
  { ids, mask, oldLogprobs }: TokenSequence,
  { advantage, weight, group }: { advantage: number; weight: number; group: number },
): BatchSequence {
  const known = oldLogprobs.map((value) => (Number.isNaN(value) ? null : value));
  return { ids, mask, oldLogprobs: known, advantage, weight, group };
}

/** The reference for the trainer. Step 0 is the base model. */
async function referenceAdapter(
  step: number | null,
  modelId: string,
  { modelTable, workspace }: TrainingContext,
): Promise<string | "base" | null> {
  if (step === null) return null;
  if (step === 0) return "base";
  const folder = await modelTable.folderOf(modelId, step);
  if (folder === null) throw new TrainingError("no_kl_reference", { step });
  return workspace.stepFolder(modelId, folder);
}

/**
 * How far the spread of rewards has shrunk over the model's steps, including this job unless its `rewardStdDev` is
 * undefined. A fork counts from its first step, because nothing is known about the steps before.
 */
async function spread(
  job: JobRecord,
  jobTable: JobTable,
  currentStep: number,
  rewardStdDev: number | undefined,
): Promise<number> {
  const first = (await jobTable.firstStepOf(job.modelId)) ?? currentStep;
  const points = await jobTable.rewardSpreads(job.modelId);
  if (rewardStdDev !== undefined) points.push({ step: currentStep, rewardStdDev });
  return rewardSpreadMultiplier(points.map((point) => ({ ...point, step: point.step - first })));
}

// What a job's report adds up to, for lists: the report itself may have thousands of entries.

export interface JobTotals {
  /** 0 for examples, which have no groups. */
  groups: number;
  /** Groups whose rewards differ, so that there is something to learn. Absent in totals of earlier versions. */
  trainableGroups?: number;
  /** Or examples. */
  trajectories: number;
  trained: number;
  /** How many of them have each verdict. */
  byStatus: Record<string, number>;
  tokens: number;
  trainableTokens: number;
}

export function totalsOf({ trajectories, examples, totals }: JobReport): JobTotals {
  const entries: readonly { status: string; tokens: number; trainableTokens: number }[] =
    trajectories ?? examples ?? [];
  const byStatus: Record<string, number> = {};
  for (const { status } of entries) byStatus[status] = (byStatus[status] ?? 0) + 1;
  return {
    groups: totals.num_groups_submitted ?? 0,
    trainableGroups: totals.num_groups_trainable ?? 0,
    trajectories: entries.length,
    trained: byStatus.trained ?? 0,
    byStatus,
    tokens: entries.reduce((sum, { tokens }) => sum + tokens, 0),
    trainableTokens: entries.reduce((sum, { trainableTokens }) => sum + trainableTokens, 0),
  };
}
