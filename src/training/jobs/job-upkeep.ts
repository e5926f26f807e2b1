// What a server does now and then, and when others tell it to: renew the leases of its jobs, take over those of servers
// that are gone, look for waiting jobs, and wake those who watch jobs. Others tell at once what a look finds later.

import { BackgroundWork } from "../../pacing/work.ts";
import { type ClaimedJob, LostLease } from "../../store/tables/leases.ts";
import type { Alongside } from "../../store/tables/tables.ts";
import type { TrainingContext } from "../context.ts";
import { clearFiles } from "../steps/step-upkeep.ts";
import { cancelled, failed, JOB_CANCEL, JOB_NEWS, JOB_WAITING, type JobJournal } from "./job-journal.ts";
import type { JobRunner } from "./job-runner.ts";

// Jobs whose server is gone. They go back to the queue, or end if they were cancelled or seem to cause the crashes. Any
// server may do this at any time: each job is taken over once, because its lease is looked at in the same transaction.

/** A job that was running at this many crashes is taken to be their cause. */
const MAX_ATTEMPTS = 5;

/** Takes over a running job. `stillLost` is checked in the same transaction, and throws LostLease if it is not. */
async function takeOver(
  { job, lease }: ClaimedJob,
  stillLost: Alongside,
  context: TrainingContext,
  journal: JobJournal,
): Promise<void> {
  const { transaction, workspace, log } = context;
  await workspace.makingRoom(async () => {
    if (job.cancelRequested) await journal.finish(lease, cancelled("cancelled"), stillLost);
    else if (job.attempts >= MAX_ATTEMPTS) {
      const why = `the server stopped ${job.attempts} times while this job was running`;
      await journal.finish(lease, failed(why), stillLost);
    } else {
      await transaction(async (tx) => {
        await stillLost(tx);
        await tx.leaseTable.requeue(lease, true);
      });
      log.info("training job resumed", { job: job.id, attempts: job.attempts });
    }
  });
}

/** Takes over the jobs whose leases have expired, except those that `runsHere`. */
async function sweep(
  context: TrainingContext,
  journal: JobJournal,
  runsHere: (jobId: string) => boolean,
): Promise<void> {
  const { leaseTable, hints, log } = context;
  const expired = (await leaseTable.running({ expired: true })).filter(({ job }) => !runsHere(job.id));
  for (const claimed of expired) {
    try {
      await takeOver(claimed, (tx) => tx.leaseTable.assertExpired(claimed.lease), context, journal);
    } catch (error) {
      // another server took it over, or its own is back
      if (!(error instanceof LostLease)) {
        log.error("a training job could not be taken over", { job: claimed.job.id, error });
      }
    }
  }
  if (expired.length > 0) await hints.notify(JOB_WAITING, "");
}

// Puts right what a server that crashed left behind, before anything else starts. Jobs that were running are taken over.
// Files without a row are removed, or moved aside if they may be worth something. Only for a server that is alone:
// others may be at work.
export async function recover(context: TrainingContext, journal: JobJournal): Promise<void> {
  // nobody writes anything now
  await context.accountTable.releaseAll();
  const interrupted = await context.leaseTable.running({ expired: false });
  for (const claimed of interrupted) await takeOver(claimed, async () => {}, context, journal);
  await clearFiles(context, { interrupted: new Set(interrupted.map(({ job }) => job.modelId)), minAgeMs: 0 });
}

export class JobUpkeep {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #runner: JobRunner;
  readonly #work: BackgroundWork;
  readonly #stops: (() => void)[] = [];

  constructor(context: TrainingContext, journal: JobJournal, runner: JobRunner) {
    this.#context = context;
    this.#journal = journal;
    this.#runner = runner;
    this.#work = new BackgroundWork((what, error) => context.log.error(what, { error }));
  }

  start(): void {
    const { hints, times, server } = this.#context;
    this.#work.every(times.renew, "renewing leases", () => this.#runner.renew());
    this.#work.every(times.sweep, "looking for expired leases", () => this.#sweep());
    // nobody else changes anything on a store of its own
    if (server.alone) return;
    this.#work.every(times.poll, "looking for jobs", async () => {
      this.#journal.look();
      await this.#runner.pump();
    });
    this.#stops.push(
      hints.listen(JOB_NEWS, (jobId) => this.#journal.look(jobId || undefined)),
      hints.listen(JOB_WAITING, () => this.#work.start("looking for jobs", () => this.#runner.pump())),
      hints.listen(JOB_CANCEL, (jobId) =>
        // a renewal sees what was not heard
        this.#work.start("cancelling a job", () => (jobId === "" ? this.#runner.renew() : this.#cancel(jobId))),
      ),
    );
  }

  /** Comes after the runner has closed: until then its jobs need their leases. */
  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop();
    await this.#work.close();
  }

  async #cancel(jobId: string): Promise<void> {
    await this.#runner.cancelHere(jobId, "cancelled");
  }

  #sweep(): Promise<void> {
    return sweep(this.#context, this.#journal, (jobId) => this.#runner.runs(jobId));
  }
}
