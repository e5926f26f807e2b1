// Runs the queue of jobs: those of one model one after the other, those of different models side by side up to a limit.
// However a job ends, it ends with a status and an event, and its files go. If that cannot be written because the disk
// is full, the runner tries again until it can.

import { isFinal } from "../../store/job-state.ts";
import type { JobEnd, JobRecord } from "../../store/job-table.ts";
import type { TrainingContext } from "../context.ts";
import type { StepRetention } from "../steps/step-retention.ts";
import { cancelled, failed, type JobJournal } from "./job-journal.ts";

const RETRY_MS = 2_000;

/** Runs a job once; the job is RUNNING. Resolves when its end is recorded; rejects with a message for the user. */
export type AttemptJob = (job: JobRecord, signal: AbortSignal) => Promise<void>;

interface RunningJob {
  controller: AbortController;
  done: Promise<void>;
}

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
  readonly #running = new Map<string, RunningJob>();
  /** The last look for jobs to start. */
  #pumping: Promise<void> = Promise.resolve();
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

  /** Starts what can be started. One look follows the other, so that two cannot start more jobs than allowed. */
  pump(): Promise<void> {
    this.#pumping = this.#pumping.then(() => this.#startJobs());
    return this.#pumping;
  }

  /** Tells a job that is marked as running to stop. */
  async cancel(jobId: string, why: string): Promise<void> {
    (await this.#find(jobId))?.controller.abort(new Stop("cancelled", why));
  }

  /** Cancels a model's open jobs. Resolves when none of them runs. */
  async cancelJobsOf(modelId: string, why: string): Promise<void> {
    const message = `cancelled because ${why}`;
    const { jobTable, workspace } = this.#context;
    // looked up again each time, because jobs come and end meanwhile
    for (let [job] = await jobTable.openOf(modelId); job; [job] = await jobTable.openOf(modelId)) {
      const { id } = job;
      const status = await workspace.makingRoom(() => this.#journal.cancel(id, message));
      if (status !== "RUNNING") continue;
      const running = await this.#find(id);
      if (running) {
        running.controller.abort(new Stop("cancelled", message));
        await running.done;
      } else await this.#endAbandoned(id, message);
    }
  }

  /** Puts running jobs back in the queue; they start again with the next server. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { controller } of this.#running.values()) {
      controller.abort(new Stop("shutdown", "the server is stopping"));
    }
    await this.#pumping;
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** A job that was just claimed is among the running ones once the look that claimed it is over. */
  async #find(jobId: string): Promise<RunningJob | undefined> {
    await this.#pumping;
    return this.#running.get(jobId);
  }

  async #startJobs(): Promise<void> {
    while (!this.#closed && this.#running.size < this.#context.settings.maxParallelJobs) {
      const job = await this.#claim();
      if (!job) return;
      const controller = new AbortController();
      if (this.#closed) controller.abort(new Stop("shutdown", "the server is stopping"));
      const done = this.#run(job, controller.signal).finally(() => {
        this.#running.delete(job.id);
        // leaves the stack, so that a thousand quick jobs do not nest
        setImmediate(() => void this.pump());
      });
      this.#running.set(job.id, { controller, done });
    }
  }

  async #claim(): Promise<JobRecord | null> {
    const { transaction, log } = this.#context;
    try {
      return await transaction(({ jobTable }) => jobTable.claim(), { relaxed: true });
    } catch (error) {
      log.error("the next training job could not be looked up", { error });
      return null;
    }
  }

  async #run(job: JobRecord, signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    try {
      signal.throwIfAborted();
      await this.#attempt(job, signal);
      log.info("training job completed", { job: job.id, model: job.modelId });
    } catch (error) {
      if (error instanceof Stop && error.kind === "shutdown") {
        await this.#requeue(job);
        return;
      }
      const message = await this.#forClients(job, error instanceof Error ? error.message : String(error));
      if (error instanceof Stop) log.info("training job cancelled", { job: job.id, model: job.modelId, message });
      else log.warn("training job ended without a new step", { job: job.id, model: job.modelId, error });
      await this.#finishSurely(job, error instanceof Stop ? cancelled(message) : failed(message));
      return;
    }
    await this.#retention.afterStep(job.modelId);
  }

  /** The message without paths of this machine, which messages of the file system contain. */
  async #forClients(job: JobRecord, message: string): Promise<string> {
    const { modelTable, bases, workspace, log } = this.#context;
    const model = await modelTable.get(job.modelId).catch((error: unknown) => {
      log.error("the model of a training job could not be looked up", { job: job.id, error });
      return null;
    });
    const baseModel = model?.baseModel;
    const base = baseModel === undefined ? null : bases.get(baseModel);
    const text = workspace.withoutRoot(message);
    return base ? text.replaceAll(base.folder, base.name) : text;
  }

  async #requeue(job: JobRecord): Promise<void> {
    const { transaction, log } = this.#context;
    try {
      await transaction(async ({ jobTable }) => {
        if ((await jobTable.get(job.id))?.status === "RUNNING") await jobTable.requeue(job.id, false);
      });
    } catch (error) {
      // the next start finds it as RUNNING, which means the same
      log.error("a training job could not be put back", { job: job.id, error });
    }
  }

  async #finishSurely(job: JobRecord, end: JobEnd): Promise<void> {
    const { jobTable, workspace, log } = this.#context;
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        await this.#journal.finish(job.id, end);
        return;
      } catch (error) {
        const now = await jobTable.get(job.id).catch(() => undefined);
        if (now === null || (now && isFinal(now.status))) return; // somebody else ended it
        workspace.releaseReserve();
        if (attempt === 1) log.error("the end of a job cannot be recorded yet", { job: job.id, error });
        if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Ends a job that is marked as running although nothing runs it, because a stopping server left it so. */
  async #endAbandoned(id: string, message: string): Promise<void> {
    const job = await this.#context.jobTable.get(id);
    if (job?.status !== "RUNNING") return;
    await this.#context.workspace.makingRoom(() => this.#journal.finish(id, cancelled(message)));
  }
}
