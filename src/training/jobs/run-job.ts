// One attempt at one job: tokenise, train, publish the new step. Every word the client hears is an event; the last one
// becomes visible in the same transaction as the step, after the step's files are on the disk and the engine has them, if
// there is room. Repeating an attempt after a crash gives the same numbers, so events that are already there are not
// written twice.

import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { loadPeft } from "../../model/lora/peft.ts";
import type { EventTable } from "../../store/event-table.ts";
import type { JobRecord, JobTable } from "../../store/job-table.ts";
import type { ModelRecord, ModelTable } from "../../store/model-table.ts";
import type { BaseModel, BaseModels } from "../base-models.ts";
import { type BatchSequence, OPTIMIZER_FILE, type StepMetrics, type Trainer } from "../contract.ts";
import { averages } from "../data/group-metrics.ts";
import { copyStep } from "../files/adapter-files.ts";
import { folderBytes, hasFile, type Workspace } from "../files/workspace.ts";
import { assertServable, type Policies } from "../policies.ts";
import { type JobWork, workOf } from "./job-work.ts";
import type { Jobs } from "./jobs.ts";

export interface RunDeps {
  models: ModelTable;
  jobTable: JobTable;
  events: EventTable;
  jobs: Jobs;
  bases: BaseModels;
  policies: Policies;
  workspace: Workspace;
  trainer: Trainer;
  threads: number;
  activationBytes: number;
}

/** What one attempt works on: `from` is the step it continues, `staging` the folder the new step is made in. */
interface Attempt {
  job: JobRecord;
  model: ModelRecord;
  base: BaseModel;
  from: number;
  staging: string;
  signal: AbortSignal;
}

/** Marks the job RUNNING. Resolves when the new step is published; rejects with a message for the user. */
export async function runJob(job: JobRecord, deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { models, bases, policies } = deps;
  // else its events and files take the room that recording its end needs
  if (!deps.workspace.keepReserve()) throw new Error("the server's disk is full");
  const model = models.get(job.modelId);
  if (!model) throw new Error("its model was deleted");
  const base = bases.get(model.baseModel);
  if (!base) throw new Error(`the base model ${model.baseModel} is not on this server any more`);
  bases.assertUnchanged(base);
  assertServable(model, base);
  const from = models.newestStep(model.id)!.step;
  const staging = deps.workspace.newStaging(model.id, job.id);
  const releases = [policies.lease(model.id, from)];
  try {
    deps.jobTable.start(job.id, from);
    const context = { base, models, jobs: deps.jobTable, workspace: deps.workspace, currentStep: from, signal };
    const work = await workOf(job, context);
    for (const step of work.usedSteps) releases.push(policies.lease(model.id, step));
    deps.jobTable.setReport(job.id, JSON.stringify(work.report));
    const attempt = { job, model, base, from, staging, signal };
    const metrics = await train(attempt, work, deps);
    signal.throwIfAborted();
    await publish(attempt, work, metrics, deps);
  } finally {
    deps.workspace.removeStaging(staging);
    for (const release of releases) release();
  }
}

/** Fills the staging folder; averages of the steps' metrics. */
async function train(
  { job, model, base, from, staging, signal }: Attempt,
  work: JobWork,
  { workspace, jobs, events, jobTable, trainer, threads, activationBytes }: RunDeps,
): Promise<Record<string, number>> {
  const adapter = workspace.stepFolder(model.id, from);
  if (events.count(job.id, "training_started") === 0) {
    // gradient steps, under the name that ART clients know
    jobs.addEvent(job.id, "training_started", { num_sequences: work.plan.length });
  }
  if (work.plan.length === 0) {
    // nothing to learn: the step advances all the same, so that client and server count alike
    copyStep(adapter, staging);
    return {};
  }
  await writeBatch(workspace.jobBatch(job.id), work.batch);
  const alreadyTold = events.count(job.id, "gradient_step");
  const samples: StepMetrics[] = [];
  const onStep = (metrics: StepMetrics) => {
    const { gradient_step: _, ...measured } = metrics;
    samples.push(measured);
    if (samples.length <= alreadyTold) return;
    jobs.addEvent(job.id, "gradient_step", { ...metrics, ...work.eventMetrics(samples.length - 1) });
    jobTable.setProgress(job.id, samples.length / work.plan.length);
  };
  const optimizerState = join(adapter, OPTIMIZER_FILE);
  const result = await trainer.train(
    {
      baseModel: base.folder,
      weights: base.weights,
      positionsPerBlock: base.engine.info.positionsPerBlock,
      adapter,
      optimizerState: hasFile(optimizerState) ? optimizerState : null,
      batch: workspace.jobBatch(job.id),
      steps: work.plan,
      objective: work.objective,
      optimizer: work.optimizer,
      output: staging,
      threads,
      activationBytes,
    },
    onStep,
    signal,
  );
  work.report.usage = { tokens: result.tokens, seconds: result.seconds, peakBytes: result.peakBytes };
  return averages(samples);
}

async function publish(
  { job, model, base, staging }: Attempt,
  work: JobWork,
  metrics: Record<string, number>,
  { workspace, policies, models, jobs }: RunDeps,
): Promise<void> {
  const step = models.get(model.id)?.nextStep;
  if (step === undefined) throw new Error("its model was deleted");
  workspace.publish(staging, model.id, step);
  try {
    loadPeft(workspace.stepFolder(model.id, step), readModelConfig(base.folder));
    await policies.loadAhead(model, step, base);
    const bytes = folderBytes(workspace.stepFolder(model.id, step));
    const end = {
      status: "COMPLETED" as const,
      errorMessage: null,
      toStep: step,
      report: JSON.stringify(work.report),
      rewardStdDev: work.rewardStdDev,
      tokens: work.report.usage?.tokens ?? 0,
      event: { type: "training_ended", data: { step } },
    };
    jobs.finish(job.id, end, () => {
      models.insertStep(model.id, step, job.id, bytes, { ...metrics, ...work.stepMetrics });
    });
  } catch (error) {
    await policies.unload(model.id, step, base);
    workspace.removeStep(model.id, step);
    throw error;
  }
}

async function writeBatch(path: string, batch: readonly BatchSequence[]): Promise<void> {
  const file = createWriteStream(path, { mode: 0o600 });
  const done = finished(file);
  done.catch(() => {});
  for (const sequence of batch) {
    if (!file.write(`${JSON.stringify(sequence)}\n`)) {
      await Promise.race([new Promise<void>((resolve) => file.once("drain", resolve)), done]);
    }
  }
  file.end();
  await done;
}
