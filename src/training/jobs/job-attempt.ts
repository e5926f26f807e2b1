// One attempt at a job: tokenise, train, publish the new step. The last event becomes visible in the same transaction
// as the step. Repeating an attempt after a crash gives the same numbers, so events that are already there are not
// written again.

import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import type { JobRecord } from "../../store/job-table.ts";
import type { TrainingContext } from "../context.ts";
import type { BatchSequence, StepMetrics } from "../contract.ts";
import { averages } from "../data/group-metrics.ts";
import { copyStep } from "../files/adapter-files.ts";
import type { Policies } from "../policies.ts";
import type { StepPublisher } from "../steps/publish-step.ts";
import type { JobJournal } from "./job-journal.ts";
import { type JobWarning, samplerWarning, smallStepsWarning } from "./job-warnings.ts";
import { type JobWork, workOf } from "./job-work.ts";
import { optimizerStateIn, type StartingPoint, startingPoint, taskModel } from "./starting-point.ts";

interface Attempt extends StartingPoint {
  job: JobRecord;
  /** The folder that the new step is made in. */
  staging: string;
  signal: AbortSignal;
}

export class JobAttempts {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #policies: Policies;
  readonly #publisher: StepPublisher;

  constructor(context: TrainingContext, journal: JobJournal, policies: Policies, publisher: StepPublisher) {
    this.#context = context;
    this.#journal = journal;
    this.#policies = policies;
    this.#publisher = publisher;
  }

  /** Marks the job RUNNING. Resolves when the new step is published; rejects with a message for the user. */
  async run(job: JobRecord, signal: AbortSignal): Promise<void> {
    const { jobTable, workspace } = this.#context;
    const { model, base, from } = startingPoint(job, this.#context);
    const staging = workspace.newStaging(model.id, job.id);
    const releases = [this.#policies.lease(model.id, from)];
    try {
      jobTable.start(job.id, from);
      const work = await workOf(job, this.#context, { base, currentStep: from, signal });
      for (const step of work.usedSteps) releases.push(this.#policies.lease(model.id, step));
      jobTable.setReport(job.id, JSON.stringify(work.report));
      const attempt = { job, model, base, from, staging, signal };
      const metrics = await this.#train(attempt, work);
      signal.throwIfAborted();
      await this.#publish(attempt, work, metrics);
    } finally {
      workspace.removeStaging(staging);
      for (const release of releases) release();
    }
  }

  /** Fills the staging folder. Returns the averages of the gradient steps' metrics. */
  async #train({ job, model, base, from, staging, signal }: Attempt, work: JobWork): Promise<Record<string, number>> {
    const { workspace, eventTable, jobTable, trainer } = this.#context;
    const target = taskModel({ model, base, from }, this.#context);
    if (eventTable.count(job.id, "training_started") === 0) {
      // ART clients expect the number of gradient steps under this name
      this.#journal.addEvent(job.id, "training_started", { num_sequences: work.plan.length });
    }
    if (work.plan.length === 0) {
      // nothing to learn: the step advances anyway, so that client and server count alike
      copyStep(target.adapter, staging);
      return {};
    }
    await writeBatch(workspace.jobBatch(job.id), work.batch);
    const alreadyTold = eventTable.count(job.id, "gradient_step");
    const warn = this.#warner(job.id);
    const samples: StepMetrics[] = [];
    const onStep = (metrics: StepMetrics) => {
      const { gradient_step: _, ...measured } = metrics;
      samples.push(measured);
      if (samples.length > alreadyTold) {
        this.#journal.addEvent(job.id, "gradient_step", { ...metrics, ...work.eventMetrics(samples.length - 1) });
        jobTable.setProgress(job.id, samples.length / work.plan.length);
      }
      if (samples.length === 1) warn(samplerWarning(metrics, work.objective, work.report.totals.steps_off_policy ?? 0));
    };
    const result = await trainer.train(
      {
        ...target,
        optimizerState: optimizerStateIn(target.adapter),
        batch: workspace.jobBatch(job.id),
        steps: work.plan,
        objective: work.objective,
        optimizer: work.optimizer,
        output: staging,
      },
      onStep,
      signal,
    );
    warn(smallStepsWarning(result, work.plan.length, work.objective));
    work.report.usage = { tokens: result.tokens, seconds: result.seconds, peakBytes: result.peakBytes };
    return averages(samples);
  }

  /** Tells the log and the job's events. A repeated attempt gives the same warnings, and they are told once. */
  #warner(jobId: string): (warning: JobWarning | null) => void {
    const { eventTable, log } = this.#context;
    const alreadyTold = eventTable.count(jobId, "training_warning");
    let given = 0;
    return (warning) => {
      if (warning === null || ++given <= alreadyTold) return;
      log.warn(`a training job: ${warning.message}`, { job: jobId, code: warning.code });
      this.#journal.addEvent(jobId, "training_warning", { ...warning });
    };
  }

  #publish({ job, model, base, staging }: Attempt, work: JobWork, metrics: Record<string, number>): Promise<void> {
    const trained = { model, base, staging, jobId: job.id, metrics: { ...metrics, ...work.stepMetrics } };
    return this.#publisher.publishTrained(trained, (step, insertStep) => {
      const end = {
        status: "COMPLETED" as const,
        errorMessage: null,
        toStep: step,
        report: JSON.stringify(work.report),
        rewardStdDev: work.rewardStdDev,
        tokens: work.report.usage?.tokens ?? 0,
        event: { type: "training_ended", data: { step } },
      };
      this.#journal.finish(job.id, end, insertStep);
    });
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
