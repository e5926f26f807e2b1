// Runs the queue of jobs: those of one model one after the other, those of different models side by side up to a limit.
// However a job ends, it ends with a status and an event, and its files go. If that cannot be written because the disk
// is full, the runner tries again until it can.

import type { JobEnd, JobRecord } from "../../store/job-table.ts";
import type { TrainingContext } from "../context.ts";
import type { StepRetention } from "../steps/step-retention.ts";
import { cancelled, failed, type JobJournal } from "./job-journal.ts";

const RETRY_MS = 2_000;

/** Runs a job once. Resolves when its end is recorded; rejects with a message for the user. */
export type AttemptJob = (job: JobRecord, signal: AbortSignal) => Promise<void>;

/** Why a running job was told to stop. */
class Stop extends Error {
  readonly kind: "cancelled" | "shutdown";

  constructor(kind: "cancelled" | "shutdown", message: string) {
    super(message);
    this.kind = kind;
  }
}

export class JobRunner {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #attempt: AttemptJob;
  readonly #retention: StepRetention;
  readonly #running = new Map<string, { controller: AbortController; done: Promise<void> }>();
  #closed = false;

  constructor(context: TrainingContext, journal: JobJournal, attempt: AttemptJob, retention: StepRetention) {
    this.#context = context;
    this.#journal = journal;
    this.#attempt = attempt;
    this.#retention = retention;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Starts what can be started. */
  pump(): void {
    while (!this.#closed && this.#running.size < this.#context.settings.maxParallelJobs) {
      const job = this.#next();
      if (!job) return;
      const controller = new AbortController();
      const done = this.#run(job, controller.signal).finally(() => {
        this.#running.delete(job.id);
        // leaves the stack, so that a thousand quick jobs do not nest
        setImmediate(() => this.pump());
      });
      this.#running.set(job.id, { controller, done });
    }
  }

  cancel(jobId: string, why: string): void {
    this.#running.get(jobId)?.controller.abort(new Stop("cancelled", why));
  }

  /** Cancels a model's open jobs. Resolves when none of them runs. */
  async cancelJobsOf(modelId: string, why: string): Promise<void> {
    const message = `cancelled because ${why}`;
    const { jobTable, workspace } = this.#context;
    // looked up again each time, because jobs come and end meanwhile
    for (let [job] = jobTable.openOf(modelId); job; [job] = jobTable.openOf(modelId)) {
      const { id } = job;
      workspace.makingRoom(() => jobTable.requestCancel(id));
      const running = this.#running.get(id);
      if (!running) {
        workspace.makingRoom(() => this.#journal.finish(id, cancelled(message)));
        continue;
      }
      running.controller.abort(new Stop("cancelled", message));
      await running.done;
    }
  }

  /** Puts running jobs back in the queue; they start again with the next server. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { controller } of this.#running.values()) {
      controller.abort(new Stop("shutdown", "the server is stopping"));
    }
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #next(): JobRecord | null {
    try {
      return this.#context.jobTable.nextRunnable(new Set(this.#running.keys()));
    } catch (error) {
      this.#context.log.error("the next training job could not be looked up", { error });
      return null;
    }
  }

  async #run(job: JobRecord, signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    try {
      await this.#attempt(job, signal);
      log.info("training job completed", { job: job.id, model: job.modelId });
    } catch (error) {
      if (error instanceof Stop && error.kind === "shutdown") {
        this.#requeue(job);
        return;
      }
      const message = this.#forClients(job, error instanceof Error ? error.message : String(error));
      if (error instanceof Stop) log.info("training job cancelled", { job: job.id, model: job.modelId, message });
      else log.warn("training job ended without a new step", { job: job.id, model: job.modelId, error });
      await this.#finishSurely(job, error instanceof Stop ? cancelled(message) : failed(message));
      return;
    }
    await this.#retention.afterStep(job.modelId);
  }

  /** The message without paths of this machine, which messages of the file system contain. */
  #forClients(job: JobRecord, message: string): string {
    const { modelTable, bases, workspace } = this.#context;
    const baseModel = modelTable.get(job.modelId)?.baseModel;
    const base = baseModel === undefined ? null : bases.get(baseModel);
    const text = workspace.withoutRoot(message);
    return base ? text.replaceAll(base.folder, base.name) : text;
  }

  #requeue(job: JobRecord): void {
    const { jobTable, log } = this.#context;
    try {
      if (jobTable.get(job.id)?.status === "RUNNING") jobTable.requeue(job.id, false);
    } catch (error) {
      // the next start finds it as RUNNING, which means the same
      log.error("a training job could not be put back", { job: job.id, error });
    }
  }

  async #finishSurely(job: JobRecord, end: JobEnd): Promise<void> {
    const { workspace, log } = this.#context;
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        this.#journal.finish(job.id, end);
        return;
      } catch (error) {
        workspace.releaseReserve();
        if (attempt === 1) log.error("the end of a job cannot be recorded yet", { job: job.id, error });
        if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
