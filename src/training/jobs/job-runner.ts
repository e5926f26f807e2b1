// The line of jobs: those of one model one after the other, those of different models side by side up to a limit. A job
// that ends in any way ends with a status, an event and no files. If even that cannot be written (disk full), it is
// tried again until it can.

import type { Log } from "../../observe/log.ts";
import type { JobEnd, JobRecord } from "../../store/job-table.ts";
import { cancelled, failed } from "./jobs.ts";
import { type RunDeps, runJob } from "./run-job.ts";

export interface RunnerOptions {
  maxParallelJobs: number;
  log: Log;
  /** Called after a job completed and its step is visible. */
  onPublished(modelId: string): Promise<void>;
}

const RETRY_MS = 2_000;

/** Why a running job was told to stop. */
class Stop extends Error {
  readonly kind: "cancelled" | "shutdown";

  constructor(kind: "cancelled" | "shutdown", message: string) {
    super(message);
    this.kind = kind;
  }
}

export class JobRunner {
  readonly #deps: RunDeps;
  readonly #options: RunnerOptions;
  readonly #running = new Map<string, { controller: AbortController; done: Promise<void> }>();
  #closed = false;

  constructor(deps: RunDeps, options: RunnerOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Starts what can be started. */
  pump(): void {
    while (!this.#closed && this.#running.size < this.#options.maxParallelJobs) {
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

  /** Cancels a model's open jobs; resolves when none of them runs. */
  async cancelJobsOf(modelId: string, why: string): Promise<void> {
    const message = `cancelled because ${why}`;
    const { jobTable, jobs, workspace } = this.#deps;
    // looked up anew each time: others come and end meanwhile
    for (let [job] = jobTable.openOf(modelId); job; [job] = jobTable.openOf(modelId)) {
      const { id } = job;
      workspace.makingRoom(() => jobTable.requestCancel(id));
      const running = this.#running.get(id);
      if (!running) {
        workspace.makingRoom(() => jobs.finish(id, cancelled(message)));
        continue;
      }
      running.controller.abort(new Stop("cancelled", message));
      await running.done;
    }
  }

  /** Running jobs go back to the line; they start again with the next server. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { controller } of this.#running.values())
      controller.abort(new Stop("shutdown", "the server is stopping"));
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #next(): JobRecord | null {
    try {
      return this.#deps.jobTable.nextRunnable(new Set(this.#running.keys()));
    } catch (error) {
      this.#options.log.error("the next training job could not be looked up", { error });
      return null;
    }
  }

  async #run(job: JobRecord, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    try {
      await runJob(job, this.#deps, signal);
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
    try {
      await this.#options.onPublished(job.modelId);
    } catch (error) {
      log.error("after a training job", { job: job.id, error });
    }
  }

  /** Messages of the file system name files by their path; clients get the part that is theirs to know. */
  #forClients(job: JobRecord, message: string): string {
    const { models, bases, workspace } = this.#deps;
    const baseModel = models.get(job.modelId)?.baseModel;
    const base = baseModel === undefined ? null : bases.get(baseModel);
    const text = workspace.withoutRoot(message);
    return base ? text.replaceAll(base.folder, base.name) : text;
  }

  #requeue(job: JobRecord): void {
    try {
      if (this.#deps.jobTable.get(job.id)?.status === "RUNNING") this.#deps.jobTable.requeue(job.id, false);
    } catch (error) {
      // found as RUNNING at the next start, which means the same
      this.#options.log.error("a training job could not be put back", { job: job.id, error });
    }
  }

  async #finishSurely(job: JobRecord, end: JobEnd): Promise<void> {
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        this.#deps.jobs.finish(job.id, end);
        return;
      } catch (error) {
        this.#deps.workspace.releaseReserve();
        if (attempt === 1) this.#options.log.error("the end of a job cannot be recorded yet", { job: job.id, error });
        if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
