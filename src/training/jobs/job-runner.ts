// Runs the queue of jobs: those of one model one after the other, those of different models side by side up to a limit.
// However a job ends, it ends with a status and an event, and its files go. If that cannot be written because the disk
// is full, the runner tries again until it can. A job whose lease is lost belongs to another server: the runner drops it.

import { CommitUnknown, clientText, DISK_FULL, isDiskFull, isStoreUnreachable } from "../../errors/faults.ts";
import { SerialWork } from "../../pacing/work.ts";
import type { JobEnd, JobRecord } from "../../store/tables/jobs.ts";
import { type ClaimedJob, type Lease, LostLease } from "../../store/tables/leases.ts";
import type { TrainingContext } from "../context.ts";
import type { StepRetention } from "../steps/step-upkeep.ts";
import { TrainingError } from "../training-error.ts";
import { cancelled, failed, JOB_CANCEL, JOB_WAITING, type JobJournal } from "./job-journal.ts";

const RETRY_MS = 2_000;
/** What a job says of an exception whose text is not for clients. */
const UNEXPECTED = "the server met an unexpected error, which its log has";

/** How often to look whether a job on another server has stopped. */
const LOOK_MS = 250;

/**
 * Runs a job once; the job is RUNNING. Resolves when its end is recorded; rejects with a message for the user, or with
 * LostLease.
 */
export type AttemptJob = (claimed: ClaimedJob, signal: AbortSignal) => Promise<void>;

interface RunningJob {
  lease: Lease;
  controller: AbortController;
  done: Promise<void>;
}

/** Why a running job was told to stop. */
class Stop extends Error {
  readonly kind: "cancelled" | "shutdown";

  constructor(kind: Stop["kind"], message: string) {
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
  /** Looks for jobs to start follow one another, so that two cannot start more jobs than allowed. */
  readonly #looks = new SerialWork();
  /** The answer to a claim was lost. */
  #mayHoldMore = false;
  #closed = false;
  #later: NodeJS.Timeout | undefined;

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
  pump(): Promise<void> {
    return this.#looks.run(() => this.#startJobs());
  }

  /** A job was added: this server starts it, or another one does. */
  async wake(): Promise<void> {
    await this.pump();
    await this.#context.hints.notify(JOB_WAITING, "").catch((error: unknown) => {
      this.#context.log.warn("other servers were not told of a waiting job", { error });
    });
  }

  /** Whether this server runs the job. */
  runs(jobId: string): boolean {
    return this.#running.has(jobId);
  }

  /** Tells a job that is marked as running to stop, wherever it runs. */
  async cancel(jobId: string, why: string): Promise<void> {
    if (!(await this.cancelHere(jobId, why))) await this.#context.hints.notify(JOB_CANCEL, jobId);
  }

  /** Returns false if the job does not run on this server. */
  async cancelHere(jobId: string, why: string): Promise<boolean> {
    const running = await this.#find(jobId);
    running?.controller.abort(new Stop("cancelled", why));
    return running !== undefined;
  }

  /** Renews the leases of the running jobs, and stops those that are lost or to be cancelled. */
  async renew(): Promise<void> {
    const { leaseTable, log } = this.#context;
    for (const { lease, controller } of [...this.#running.values()]) {
      try {
        const { cancelRequested } = await leaseTable.renew(lease);
        if (cancelRequested) controller.abort(new Stop("cancelled", "cancelled"));
      } catch (error) {
        // also if its end was recorded here just now, which the attempt survives
        if (error instanceof LostLease) controller.abort(error);
        else log.warn("the lease of a training job could not be renewed yet", { job: lease.jobId, error });
      }
    }
  }

  /** Cancels a model's open jobs. Resolves when none of them runs; throws if one on another server does not stop. */
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
      } else await this.#awaitOther(id, message);
    }
  }

  /** Puts running jobs back in the queue; they start again with the next server. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#later);
    for (const { controller } of this.#running.values()) {
      controller.abort(new Stop("shutdown", "the server is stopping"));
    }
    await this.#looks.idle();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** A job that was just claimed is among the running ones once the look that claimed it is over. */
  async #find(jobId: string): Promise<RunningJob | undefined> {
    await this.#looks.idle();
    return this.#running.get(jobId);
  }

  async #startJobs(): Promise<void> {
    if (!this.#context.server.runsJobs) return;
    while (!this.#closed && this.#running.size < this.#context.settings.maxParallelJobs) {
      const claimed = await this.#claim();
      if (!claimed) return;
      const { job, lease } = claimed;
      const controller = new AbortController();
      // its server stopped before it saw this
      if (job.cancelRequested) controller.abort(new Stop("cancelled", "cancelled"));
      if (this.#closed) controller.abort(new Stop("shutdown", "the server is stopping"));
      const done = this.#run(claimed, controller.signal).finally(() => {
        this.#running.delete(job.id);
        // leaves the stack, so that a thousand quick jobs do not nest
        setImmediate(() => void this.pump());
      });
      this.#running.set(job.id, { lease, controller, done });
    }
  }

  async #claim(): Promise<ClaimedJob | null> {
    const { leaseTable, server, times, log } = this.#context;
    try {
      const unheard = this.#mayHoldMore ? await this.#unheard() : null;
      return unheard ?? (await leaseTable.claim(server.id, times.lease));
    } catch (error) {
      log.error("the next training job could not be looked up", { error });
      this.#mayHoldMore ||= error instanceof CommitUnknown;
      this.#lookLater();
      return null;
    }
  }

  /** Nobody else may wake this server: the disk is full, or the database unreachable. */
  #lookLater(): void {
    clearTimeout(this.#later);
    if (!this.#closed) this.#later = setTimeout(() => void this.pump(), RETRY_MS).unref();
  }

  /** A job that was claimed for this server without its hearing of it: the answer was lost. */
  async #unheard(): Promise<ClaimedJob | null> {
    const { leaseTable, server, times } = this.#context;
    const held = await leaseTable.heldBy(server.id, times.lease);
    const unheard = held.find(({ job }) => !this.#running.has(job.id)) ?? null;
    this.#mayHoldMore = unheard !== null;
    return unheard;
  }

  async #run(claimed: ClaimedJob, signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    const { job, lease } = claimed;
    try {
      signal.throwIfAborted();
      await this.#attempt(claimed, signal);
      log.info("training job completed", { job: job.id, model: job.modelId });
    } catch (error) {
      if (error instanceof LostLease) {
        log.warn("training job dropped: another server has it, or it is over", { job: job.id, epoch: lease.epoch });
        return;
      }
      const unreachable = isStoreUnreachable(error);
      if (unreachable) log.warn("training job put back: the database is unreachable", { job: job.id, error });
      if (unreachable || (error instanceof Stop && error.kind === "shutdown")) {
        await this.#requeue(lease);
        return;
      }
      const said = isDiskFull(error) ? DISK_FULL : clientText(error, UNEXPECTED);
      const message = await this.#forClients(job, said);
      if (error instanceof Stop) log.info("training job cancelled", { job: job.id, model: job.modelId, message });
      else log.warn("training job ended without a new step", { job: job.id, model: job.modelId, error });
      await this.#finishSurely(lease, error instanceof Stop ? cancelled(message) : failed(message));
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

  async #requeue(lease: Lease): Promise<void> {
    const { transaction, log } = this.#context;
    try {
      await transaction(({ leaseTable }) => leaseTable.requeue(lease, false));
    } catch (error) {
      if (error instanceof LostLease) return;
      // the next start, or another server once the lease has expired, finds it as RUNNING, which means the same
      log.error("a training job could not be put back", { job: lease.jobId, error });
    }
  }

  async #finishSurely(lease: Lease, end: JobEnd): Promise<void> {
    const { workspace, log } = this.#context;
    for (let attempt = 0; !this.#closed; attempt++) {
      try {
        await this.#journal.finish(lease, end);
        return;
      } catch (error) {
        if (error instanceof LostLease) return; // somebody else ended it
        workspace.releaseReserve();
        if (attempt === 1) log.error("the end of a job cannot be recorded yet", { job: lease.jobId, error });
        if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Waits until a job that was told to stop does not run any more. */
  async #awaitOther(id: string, message: string): Promise<void> {
    const { leaseTable, hints, server, times, workspace } = this.#context;
    // a stopping server left it so: nothing runs it
    const lease = server.alone ? await leaseTable.of(id) : null;
    if (lease) return workspace.makingRoom(() => this.#journal.finish(lease, cancelled(message)));
    await hints.notify(JOB_CANCEL, id);
    // its server hears of it, sees it when it renews the lease, or loses the lease
    const until = Date.now() + times.lease + times.renew + times.sweep;
    while ((await leaseTable.of(id)) !== null) {
      if (Date.now() > until) throw new TrainingError("job_does_not_stop", { id });
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
