// Records what happens to jobs and tells those who watch them, on this server and on others. It also counts them for
// metrics.
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { CommitUnknown, isStoreUnreachable } from "../../errors/faults.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import { isFinal, type JobEnd, type JobStatus } from "../../store/tables/jobs.ts";
import type { Lease } from "../../store/tables/leases.ts";
import type { Alongside, Tables } from "../../store/tables/tables.ts";
import type { TrainingContext } from "../context.ts";

// What servers on one store tell each other. A hint may get lost: every server also looks for itself, only later.

/** A job waits for a worker. */
export const JOB_WAITING = "job_waiting";

/** The job with this id has a new event, or is gone. */
export const JOB_NEWS = "job_news";

/** The running job with this id is to be cancelled. */
export const JOB_CANCEL = "job_cancel";

type JournalContext = Pick<
  TrainingContext,
  "transaction" | "jobTable" | "eventTable" | "hints" | "workspace" | "observer" | "log"
>;

/** How often to try again while the database is unreachable. */
const RETRY_MS = 1_000;

/** null: something may have happened elsewhere; the table knows. */
export type WatchJob = (event: JobEvent | null) => void;

/** Where those listen who watch all jobs. */
const ANY_JOB = "";

const NOTHING: Alongside = async () => {};

export class JobJournal {
  readonly #context: JournalContext;
  readonly #watchers = new EventEmitter().setMaxListeners(0);
  #closed = false;

  constructor(context: JournalContext) {
    this.#context = context;
  }

  /** From now on, what cannot be recorded fails: there is no time to wait for the database. */
  close(): void {
    this.#closed = true;
  }

  /** Progress may be lost with a power failure; the repeated attempt then records it again. */
  async addEvent(lease: Lease, type: string, data: Record<string, unknown>, alongside = NOTHING): Promise<void> {
    const { observer } = this.#context;
    if (type === "gradient_step") observer?.gradientStep();
    if (type === "training_started") await this.countJobs();
    const event = await this.#record(true, async (tx, id) => {
      await alongside(tx);
      return tx.leaseTable.addEvent(lease, type, data, id);
    });
    await this.#tell(lease.jobId, event);
  }

  /**
   * Records the final status and event, in one transaction with `alongside`, and frees the job's files. Throws only
   * when nothing was recorded, so the caller can then undo what it did, even a published step.
   */
  async finish(lease: Lease, end: JobEnd, alongside = NOTHING): Promise<void> {
    const event = await this.#record(false, async (tx, id) => {
      await alongside(tx);
      return tx.leaseTable.finish(lease, end, id);
    });
    await this.#over(lease.jobId, end, event);
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
      return { status, event: await jobTable.endWaiting(jobId, end) };
    });
    if (event) await this.#over(jobId, end, event);
    return status;
  }

  /** Calls `listener` when there may be new events, until the returned function is called. */
  watch(jobId: string, listener: WatchJob): () => void {
    this.#watchers.on(jobId, listener);
    return () => this.#watchers.off(jobId, listener);
  }

  /** Calls `listener` when something may have happened to any job, until the returned function is called. */
  watchAll(listener: WatchJob): () => void {
    return this.watch(ANY_JOB, listener);
  }

  /** Something may have happened to the job, or to any job, elsewhere. */
  look(jobId?: string): void {
    const ids = jobId === undefined ? (this.#watchers.eventNames() as string[]) : [jobId];
    for (const id of ids) this.#tellHere(id, null);
  }

  /** Tells the metrics how many jobs wait and run. If that fails, the next time does: nothing else depends on it. */
  async countJobs(): Promise<void> {
    const { jobTable, observer, log } = this.#context;
    try {
      observer?.trainingJobs(await jobTable.count("PENDING"), await jobTable.count("RUNNING"));
    } catch (error) {
      log.warn("training jobs could not be counted for the metrics", { error });
    }
  }

  /**
   * Commits an event with this id and what belongs to it. A job goes on while the database is unreachable, so this waits for it.
   * If it was lost during a commit, the event shows afterwards whether the commit took effect.
   */
  async #record(relaxed: boolean, work: (tx: Tables, id: string) => Promise<JobEvent>): Promise<JobEvent> {
    const { transaction, eventTable, log } = this.#context;
    const id = randomUUID();
    let unsure = false;
    for (let tries = 0; ; tries++) {
      try {
        const done = unsure ? await eventTable.get(id) : null;
        return done ?? (await transaction((tx) => work(tx, id), { relaxed }));
      } catch (error) {
        if (!isStoreUnreachable(error) || this.#closed) throw error;
        unsure ||= error instanceof CommitUnknown;
        if (tries === 0) log.warn("what happens to a training job cannot be recorded yet", { error });
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** The end is recorded, so nothing that fails here changes it. */
  async #over(jobId: string, end: JobEnd, event: JobEvent): Promise<void> {
    const { workspace, log } = this.#context;
    try {
      // files that cannot be deleted now are deleted at the next start
      await workspace.removeJob(jobId);
      await this.#countEnd(jobId, end);
    } catch (error) {
      log.error("after the end of a training job", { job: jobId, error });
    }
    await this.#tell(jobId, event);
  }

  async #countEnd(jobId: string, end: JobEnd): Promise<void> {
    await this.countJobs();
    // its model may have been deleted meanwhile
    const { trainingStart = null, trainingEnd = null } = (await this.#context.jobTable.get(jobId)) ?? {};
    const seconds = trainingStart && trainingEnd ? (Date.parse(trainingEnd) - Date.parse(trainingStart)) / 1000 : 0;
    this.#context.observer?.trainingJobEnded(end.status, seconds, end.tokens);
  }

  async #tell(jobId: string, event: JobEvent): Promise<void> {
    const { hints, log } = this.#context;
    this.#tellHere(jobId, event);
    await hints.notify(JOB_NEWS, jobId).catch((error: unknown) => {
      log.warn("other servers were not told of an event", { job: jobId, error });
    });
  }

  /** A listener that fails does not affect the job. */
  #tellHere(jobId: string, event: JobEvent | null): void {
    const ids = jobId === ANY_JOB ? [ANY_JOB] : [jobId, ANY_JOB];
    for (const listener of ids.flatMap((id) => this.#watchers.listeners(id))) {
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
