// Records what happens to jobs and tells those who watch them. It also counts them for metrics.

import { EventEmitter } from "node:events";
import type { JobEvent } from "../../store/event-table.ts";
import { isFinal, type JobStatus } from "../../store/job-state.ts";
import type { JobEnd } from "../../store/job-table.ts";
import type { Alongside, Tables } from "../../store/tables.ts";
import type { TrainingContext } from "../context.ts";

type JournalContext = Pick<TrainingContext, "transaction" | "jobTable" | "workspace" | "observer" | "log">;

const NOTHING: Alongside = async () => {};

export class JobJournal {
  readonly #context: JournalContext;
  readonly #watchers = new EventEmitter().setMaxListeners(0);

  constructor(context: JournalContext) {
    this.#context = context;
  }

  /** Progress may be lost with a power failure; the repeated attempt then records it again. */
  async addEvent(jobId: string, type: string, data: Record<string, unknown>, alongside = NOTHING): Promise<void> {
    const { transaction, observer } = this.#context;
    if (type === "gradient_step") observer?.gradientStep();
    if (type === "training_started") await this.countJobs();
    const add = async (tx: Tables) => {
      await alongside(tx);
      return tx.eventTable.add(jobId, type, data);
    };
    this.#tell(jobId, await transaction(add, { relaxed: true }));
  }

  /**
   * Records the final status and event, in one transaction with `alongside`, and frees the job's files. Throws only
   * when nothing was recorded, so the caller can then undo what it did, even a published step.
   */
  async finish(jobId: string, end: JobEnd, alongside = NOTHING): Promise<void> {
    const event = await this.#context.transaction(async (tx) => {
      await alongside(tx);
      return tx.jobTable.finish(jobId, end);
    });
    await this.#over(jobId, end, event);
  }

  /**
   * Asks a job to stop. One that waits ends at once with the reason `why`; one that runs must be told by its runner.
   * Returns the status that it had; null = there is no such job.
   */
  async cancel(jobId: string, why: string): Promise<JobStatus | null> {
    const end = cancelled(why);
    const { status, event } = await this.#context.transaction(async ({ jobTable }) => {
      const status = (await jobTable.get(jobId))?.status ?? null;
      if (status === null || isFinal(status)) return { status, event: null };
      await jobTable.requestCancel(jobId);
      return { status, event: status === "PENDING" ? await jobTable.finish(jobId, end) : null };
    });
    if (event) await this.#over(jobId, end, event);
    return status;
  }

  /** Calls `listener` for every event from now on, until the returned function is called. */
  watch(jobId: string, listener: (event: JobEvent) => void): () => void {
    this.#watchers.on(jobId, listener);
    return () => this.#watchers.off(jobId, listener);
  }

  /** Tells the metrics how many jobs wait and run. */
  async countJobs(): Promise<void> {
    const { jobTable, observer } = this.#context;
    observer?.trainingJobs(await jobTable.count("PENDING"), await jobTable.count("RUNNING"));
  }

  /** The end is recorded, so nothing that fails here changes it. */
  async #over(jobId: string, end: JobEnd, event: JobEvent): Promise<void> {
    const { workspace, log } = this.#context;
    try {
      // files that cannot be deleted now are deleted at the next start
      workspace.removeJob(jobId);
      await this.#countEnd(jobId, end);
    } catch (error) {
      log.error("after the end of a training job", { job: jobId, error });
    }
    this.#tell(jobId, event);
  }

  async #countEnd(jobId: string, end: JobEnd): Promise<void> {
    await this.countJobs();
    // its model may have been deleted meanwhile
    const { trainingStart = null, trainingEnd = null } = (await this.#context.jobTable.get(jobId)) ?? {};
    const seconds = trainingStart && trainingEnd ? (Date.parse(trainingEnd) - Date.parse(trainingStart)) / 1000 : 0;
    this.#context.observer?.trainingJobEnded(end.status, seconds, end.tokens);
  }

  /** A listener that fails does not affect the job. */
  #tell(jobId: string, event: JobEvent): void {
    for (const listener of this.#watchers.listeners(jobId)) {
      try {
        listener(event);
      } catch (error) {
        this.#context.log.error("following a training job", { job: jobId, error });
      }
    }
  }
}

/** Its event is "training_failed": older clients know no other. The message says that the job was cancelled. */
export function cancelled(why: string): JobEnd {
  return {
    status: "CANCELLED",
    errorMessage: why,
    toStep: null,
    report: null,
    rewardStdDev: null,
    tokens: 0,
    event: { type: "training_failed", data: { error_message: why } },
  };
}

export function failed(why: string): JobEnd {
  return { ...cancelled(why), status: "FAILED" };
}
