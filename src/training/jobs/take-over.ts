// Jobs whose server is gone. They go back to the queue, or end if they were cancelled or seem to cause the crashes. Any
// server may do this at any time: each job is taken over once, because its lease is looked at in the same transaction.

import { type ClaimedJob, LostLease } from "../../store/tables/leases.ts";
import type { Alongside } from "../../store/tables/tables.ts";
import type { TrainingContext } from "../context.ts";
import { JOB_WAITING } from "./hints.ts";
import { cancelled, failed, type JobJournal } from "./job-journal.ts";

/** A job that was running at this many crashes is taken to be their cause. */
const MAX_ATTEMPTS = 5;

/** Takes over a running job. `stillLost` is checked in the same transaction, and throws LostLease if it is not. */
export async function takeOver(
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
export async function sweep(
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
