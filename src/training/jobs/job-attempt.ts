// One attempt at a job: tokenise, train, publish the new step. The last event becomes visible in the same transaction
// as the step. Repeating an attempt after a crash gives the same numbers, so events that are already there are not
// written again.

import { statSync } from "node:fs";
import { reportBytes } from "../../store/tables/jobs.ts";
import type { ClaimedJob, Lease } from "../../store/tables/leases.ts";
import type { Alongside } from "../../store/tables/tables.ts";
import { isAccountFull, type Reservation, type TakeBytes } from "../account.ts";
import type { TrainingContext } from "../context.ts";
import type { BatchSequence, Objective, StepMetrics, TrainerResult } from "../contract.ts";
import { averages } from "../data/group-metrics.ts";
import { copyStep } from "../files/adapter-files.ts";
import { hasFile } from "../files/shared-files.ts";
import type { AttemptFiles } from "../files/step-folders.ts";
import { TOKEN_ROW_BYTES } from "../gradient/token-numbers.ts";
import type { HeldStep, Policies } from "../policies.ts";
import { writePrepared } from "../records/prepared-record.ts";
import type { StepPublisher } from "../steps/publish-step.ts";
import { InputWriter } from "./job-input.ts";
import type { JobJournal } from "./job-journal.ts";
import { type JobWork, totalsOf, workOf } from "./job-work.ts";
import { optimizerStateIn, type StartingPoint, startingPoint, taskModel } from "./starting-point.ts";

// What a job should be told although it went well: settings that would have served it better. Each warning is an event
// of the job and a line in the log, once per job.

interface JobWarning {
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

interface Attempt extends StartingPoint, ClaimedJob {
  /** The folder of the step that it continues. */
  folder: string;
  /** The folder that the new step is made in. */
  staging: string;
  /** What the job writes while it runs. */
  files: AttemptFiles;
  /** For these files. */
  room: Reservation;
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
    const { transaction, workspace, account } = this.#context;
    const start = await startingPoint(job, this.#context);
    const { model, base, from } = start;
    const staging = workspace.newStaging(model.id, `${job.id}-${lease.epoch}`);
    const files = workspace.beginAttempt(job.id, lease.epoch);
    const room = account.open(job.owner);
    const access = { signal, patient: true };
    const held: HeldStep[] = [];
    try {
      held.push(await this.#policies.hold(model.id, from, "all", access));
      await transaction(({ leaseTable }) => leaseTable.start(lease, from), { relaxed: true });
      const work = await workOf(job, this.#context, { base, currentStep: from, signal });
      for (const step of work.usedSteps) held.push(await this.#policies.hold(model.id, step, "adapter", access));
      const report = JSON.stringify(work.report);
      const totals = JSON.stringify(totalsOf(work.report));
      const { length } = work.plan;
      await room.take(reportBytes(report, length));
      await transaction(({ leaseTable }) => leaseTable.setReport(lease, report, totals, length), { relaxed: true });
      const attempt = { ...start, folder: held[0]!.folder, job, lease, staging, files, room, signal };
      await this.#keepPrepared(attempt, work);
      const metrics = await this.#train(attempt, work);
      signal.throwIfAborted();
      // before clients hear of the end: they may delete these steps then
      for (const { release } of held) release();
      await this.#publish(attempt, work, metrics);
    } finally {
      for (const { release } of held) release();
      await room.release();
      this.#removeFiles(job.id, staging, files);
    }
  }

  /** What cannot be removed now is cleared away later. It changes nothing about the end of the job. */
  #removeFiles(jobId: string, staging: string, files: AttemptFiles): void {
    const { workspace, log } = this.#context;
    try {
      workspace.removeStaging(staging);
      workspace.endAttempt(files);
    } catch (error) {
      log.warn("files of an attempt at a training job are still there", { job: jobId, error });
    }
  }

  /** A record that cannot be written does not keep the job from training. */
  async #keepPrepared(
    { job, files, room, signal }: Attempt,
    { prepared: { rollouts, groups } }: JobWork,
  ): Promise<void> {
    const { jobTable, records, log } = this.#context;
    if (!records.keeps) return;
    try {
      const bytes = await writePrepared(files.prepared, rollouts, groups, room.take);
      await records.publish(files.prepared, "prepared", job, { signal, patient: true });
      await jobTable.addRecordBytes(job.id, bytes);
    } catch (error) {
      signal.throwIfAborted();
      log.warn("what a training job made of its data could not be kept", { job: job.id, error });
    }
  }

  /** Whether there is room for what the trainer computes for every token. Without it the job trains all the same. */
  async #wantsNumbers({ job, room }: Attempt, { batch, plan }: JobWork): Promise<boolean> {
    const { records, log } = this.#context;
    if (!records.keeps) return false;
    const trained = plan.flatMap(({ from, to }) => batch.slice(from, to));
    const tokens = trained.reduce((sum, { mask }) => sum + mask.filter((bit) => bit === 1).length, 0);
    try {
      await room.take(TOKEN_ROW_BYTES * tokens);
      return true;
    } catch (error) {
      if (!isAccountFull(error)) throw error;
      log.warn("what a trainer computes for every token is not kept", { job: job.id, error });
      return false;
    }
  }

  async #keepNumbers({ job, files, signal }: Attempt): Promise<void> {
    const { jobTable, records, log } = this.#context;
    if (!hasFile(files.tokens)) return;
    try {
      const { size } = statSync(files.tokens);
      await records.publish(files.tokens, "tokens", job, { signal, patient: true });
      await jobTable.addRecordBytes(job.id, size);
    } catch (error) {
      signal.throwIfAborted();
      log.warn("what a trainer computed for every token could not be kept", { job: job.id, error });
    }
  }

  /** Fills the staging folder. Returns the averages of the gradient steps' metrics. */
  async #train(attempt: Attempt, work: JobWork): Promise<Record<string, number>> {
    const { job, lease, staging, files, room, signal } = attempt;
    const { eventTable, trainer } = this.#context;
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
    await writeBatch(files.batch, work.batch, room.take);
    const wantsNumbers = await this.#wantsNumbers(attempt, work);
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
      batch: files.batch,
      steps: work.plan,
      objective: work.objective,
      optimizer: work.optimizer,
      output: staging,
      tokenNumbers: wantsNumbers ? files.tokens : null,
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
    { job, lease, model, base, staging, room, signal }: Attempt,
    work: JobWork,
    metrics: Record<string, number>,
  ): Promise<void> {
    const trained = { model, base, staging, jobId: job.id, metrics: { ...metrics, ...work.stepMetrics }, room, signal };
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
        await room.releaseIn(tx);
      });
    });
    room.settle();
  }
}

async function writeBatch(path: string, batch: readonly BatchSequence[], take: TakeBytes): Promise<void> {
  const file = await InputWriter.create(path, take);
  try {
    for (const sequence of batch) await file.append(sequence);
    await file.finish();
  } catch (error) {
    await file.abandon();
    throw error;
  }
}
