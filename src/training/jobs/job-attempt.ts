// One attempt at a job: tokenise, train, publish the new step. The last event becomes visible in the same transaction
// as the step. Repeating an attempt after a crash gives the same numbers, so events that are already there are not
// written again.

import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import type { ClaimedJob, Lease } from "../../store/lease-table.ts";
import type { Alongside } from "../../store/tables.ts";
import type { TrainingContext } from "../context.ts";
import type { BatchSequence, StepMetrics } from "../contract.ts";
import { averages } from "../data/group-metrics.ts";
import { copyStep } from "../files/adapter-files.ts";
import { hasFile } from "../files/has-file.ts";
import type { Policies } from "../policies.ts";
import { writePrepared } from "../records/prepared-record.ts";
import type { StepPublisher } from "../steps/publish-step.ts";
import type { JobJournal } from "./job-journal.ts";
import { totalsOf } from "./job-totals.ts";
import { type JobWarning, samplerWarning, smallStepsWarning } from "./job-warnings.ts";
import { type JobWork, workOf } from "./job-work.ts";
import { optimizerStateIn, type StartingPoint, startingPoint, taskModel } from "./starting-point.ts";

interface Attempt extends StartingPoint, ClaimedJob {
  /** The folder of the step that it continues. */
  folder: string;
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

  /** Resolves when the new step is published; rejects with a message for the user, or with LostLease. */
  async run({ job, lease }: ClaimedJob, signal: AbortSignal): Promise<void> {
    const { transaction, workspace } = this.#context;
    const start = await startingPoint(job, this.#context);
    const { model, base, from } = start;
    const staging = workspace.newStaging(model.id, `${job.id}-${lease.epoch}`);
    const access = { signal, patient: true };
    const held = [await this.#policies.hold(model.id, from, "all", access)];
    try {
      await transaction(({ leaseTable }) => leaseTable.start(lease, from), { relaxed: true });
      const work = await workOf(job, this.#context, { base, currentStep: from, signal });
      for (const step of work.usedSteps) held.push(await this.#policies.hold(model.id, step, "adapter", access));
      const report = JSON.stringify(work.report);
      const totals = JSON.stringify(totalsOf(work.report));
      const { length } = work.plan;
      await transaction(({ leaseTable }) => leaseTable.setReport(lease, report, totals, length), { relaxed: true });
      const attempt = { ...start, folder: held[0]!.folder, job, lease, staging, signal };
      await this.#keepPrepared(attempt, work);
      const metrics = await this.#train(attempt, work);
      signal.throwIfAborted();
      // before clients hear of the end: they may delete these steps then
      for (const { release } of held) release();
      await this.#publish(attempt, work, metrics);
    } finally {
      workspace.removeStaging(staging);
      for (const { release } of held) release();
    }
  }

  /** A record that cannot be written does not keep the job from training. */
  async #keepPrepared({ job, lease, signal }: Attempt, { prepared: { tries, groups } }: JobWork): Promise<void> {
    const { workspace, records, log } = this.#context;
    if (!records.keeps) return;
    const file = workspace.jobPrepared(job.id, lease.epoch);
    try {
      await writePrepared(file, tries, groups);
      await records.publish(file, "prepared", job, { signal, patient: true });
    } catch (error) {
      signal.throwIfAborted();
      log.warn("what a training job made of its data could not be kept", { job: job.id, error });
    }
  }

  async #keepNumbers({ job, lease, signal }: Attempt): Promise<void> {
    const { workspace, records, log } = this.#context;
    const file = workspace.jobTokens(job.id, lease.epoch);
    if (!hasFile(file)) return;
    try {
      await records.publish(file, "tokens", job, { signal, patient: true });
    } catch (error) {
      signal.throwIfAborted();
      log.warn("what a trainer computed for every token could not be kept", { job: job.id, error });
    }
  }

  /** Fills the staging folder. Returns the averages of the gradient steps' metrics. */
  async #train(attempt: Attempt, work: JobWork): Promise<Record<string, number>> {
    const { job, lease, staging, signal } = attempt;
    const { workspace, records, eventTable, trainer } = this.#context;
    const target = taskModel(attempt, attempt.folder, this.#context);
    if ((await eventTable.count(job.id, "training_started")) === 0) {
      // ART clients expect the number of gradient steps under this name
      await this.#journal.addEvent(lease, "training_started", { num_sequences: work.plan.length });
    }
    if (work.plan.length === 0) {
      // nothing to learn: the step advances anyway, so that client and server count alike
      copyStep(target.adapter, staging);
      return {};
    }
    const batch = workspace.jobBatch(job.id, lease.epoch);
    await writeBatch(batch, work.batch);
    const alreadyTold = await eventTable.count(job.id, "gradient_step");
    const samples: StepMetrics[] = [];
    // what happens is recorded in order while the trainer goes on; if something cannot be recorded, the trainer stops
    const failure = new AbortController();
    let recorded = Promise.resolve();
    const record = (work: () => Promise<void>) => {
      recorded = recorded.then(work);
      recorded.catch((error: unknown) => failure.abort(error));
    };
    const warn = await this.#warner(lease);
    const onStep = (metrics: StepMetrics) => {
      const { gradient_step: _, ...measured } = metrics;
      const done = samples.push(measured);
      if (done > alreadyTold) {
        const data = { ...metrics, ...work.eventMetrics(done - 1) };
        const progress: Alongside = ({ leaseTable }) => leaseTable.setProgress(lease, done / work.plan.length);
        record(() => this.#journal.addEvent(lease, "gradient_step", data, progress));
      }
      if (done > 1) return;
      const warning = samplerWarning(metrics, work.objective, work.report.totals.steps_off_policy ?? 0);
      record(() => warn(warning));
    };
    const task = {
      ...target,
      optimizerState: optimizerStateIn(target.adapter),
      batch,
      steps: work.plan,
      objective: work.objective,
      optimizer: work.optimizer,
      output: staging,
      tokenNumbers: records.keeps ? workspace.jobTokens(job.id, lease.epoch) : null,
    };
    try {
      const result = await trainer.train(task, onStep, AbortSignal.any([signal, failure.signal]));
      record(() => warn(smallStepsWarning(result, work.plan.length, work.objective)));
      work.report.usage = { tokens: result.tokens, seconds: result.seconds, peakBytes: result.peakBytes };
    } finally {
      // nothing may be recorded after the end of the job; a failure is thrown below, or was the trainer's reason to stop
      await recorded.catch(() => {});
    }
    await recorded;
    await this.#keepNumbers(attempt);
    return averages(samples);
  }

  /** Tells the log and the job's events. A repeated attempt gives the same warnings, and they are told once. */
  async #warner(lease: Lease): Promise<(warning: JobWarning | null) => Promise<void>> {
    const { eventTable, log } = this.#context;
    const { jobId } = lease;
    const alreadyTold = await eventTable.count(jobId, "training_warning");
    let given = 0;
    return async (warning) => {
      if (warning === null || ++given <= alreadyTold) return;
      log.warn(`a training job: ${warning.message}`, { job: jobId, code: warning.code });
      await this.#journal.addEvent(lease, "training_warning", { ...warning });
    };
  }

  async #publish(
    { job, lease, model, base, staging, signal }: Attempt,
    work: JobWork,
    metrics: Record<string, number>,
  ): Promise<void> {
    const trained = { model, base, staging, jobId: job.id, metrics: { ...metrics, ...work.stepMetrics }, signal };
    await this.#publisher.publishTrained(trained, async (step, insertStep) => {
      const end = {
        status: "COMPLETED" as const,
        errorMessage: null,
        toStep: step,
        report: JSON.stringify(work.report),
        rewardStdDev: work.rewardStdDev,
        tokens: work.report.usage?.tokens ?? 0,
        event: { type: "training_ended", data: { step } },
      };
      await this.#journal.finish(lease, end, async (tx) => {
        // first: whoever lost the job must hear that, and not that the other one has made the step already
        await tx.leaseTable.renew(lease);
        await insertStep(tx);
      });
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
