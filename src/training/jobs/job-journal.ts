// Records what happens to jobs and tells those who watch them. It also counts them for metrics.

import { EventEmitter } from "node:events";
import type { JobEvent } from "../../store/event-table.ts";
import type { JobEnd } from "../../store/job-table.ts";
import type { TrainingContext } from "../context.ts";

type JournalContext = Pick<TrainingContext, "store" | "jobTable" | "eventTable" | "workspace" | "observer" | "log">;

export class JobJournal {
  readonly #context: JournalContext;
  readonly #watchers = new EventEmitter().setMaxListeners(0);

  constructor(context: JournalContext) {
    this.#context = context;
  }

  /** Progress may be lost with a power failure; the repeated attempt then records it again. */
  addEvent(jobId: string, type: string, data: Record<string, unknown>): void {
    const { store, eventTable, observer } = this.#context;
    if (type === "gradient_step") observer?.gradientStep();
    if (type === "training_started") this.countJobs();
    const event = store.relaxed(() => eventTable.add(jobId, type, data));
    this.#tell(jobId, event);
  }

  /**
   * Records the final status and event, in one transaction with `alongside`, and frees the job's files. Throws only
   * when nothing was recorded, so the caller can then undo what it did, even a published step.
   */
  finish(jobId: string, end: JobEnd, alongside: () => void = () => {}): void {
    const { jobTable, workspace, log } = this.#context;
    const event = jobTable.finish(jobId, end, alongside);
    try {
      this.#tell(jobId, event);
      this.#countEnd(jobId, end);
      // files that cannot be deleted now are deleted at the next start
      workspace.removeJob(jobId);
    } catch (error) {
      log.error("after the end of a training job", { job: jobId, error });
    }
  }

  /** Calls `listener` for every event from now on, until the returned function is called. */
  watch(jobId: string, listener: (event: JobEvent) => void): () => void {
    this.#watchers.on(jobId, listener);
    return () => this.#watchers.off(jobId, listener);
  }

  /** Tells the metrics how many jobs wait and run. */
  countJobs(): void {
    const { jobTable, observer } = this.#context;
    observer?.trainingJobs(jobTable.count("PENDING"), jobTable.count("RUNNING"));
  }

  #countEnd(jobId: string, end: JobEnd): void {
    this.countJobs();
    const { trainingStart, trainingEnd } = this.#context.jobTable.get(jobId)!;
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
