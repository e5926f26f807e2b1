// Puts right what a server that crashed left behind, before anything else starts. Jobs that were running go back to the
// queue, or end if they were cancelled or seem to cause the crashes. Files without a row are removed, or moved aside if
// they may be worth something.

import type { TrainingContext } from "../context.ts";
import type { KnownModel } from "../files/leftovers.ts";
import { cancelled, failed, type JobJournal } from "./job-journal.ts";

/** A job that was running at this many crashes is taken to be their cause. */
const MAX_ATTEMPTS = 5;

export async function recover(context: TrainingContext, journal: JobJournal): Promise<void> {
  const { modelTable, jobTable, transaction, workspace, log } = context;
  const interrupted = await jobTable.withStatus("RUNNING");
  for (const job of interrupted) {
    await workspace.makingRoom(async () => {
      if (job.cancelRequested) await journal.finish(job.id, cancelled("cancelled"));
      else if (job.attempts >= MAX_ATTEMPTS) {
        await journal.finish(job.id, failed(`the server stopped ${job.attempts} times while this job was running`));
      } else {
        await transaction((tx) => tx.jobTable.requeue(job.id, true));
        log.info("training job resumed", { job: job.id, attempts: job.attempts });
      }
    });
  }
  const open = (await jobTable.withStatus("PENDING")).map(({ id }) => id);
  const cut = new Set(interrupted.map(({ modelId }) => modelId));
  const models = new Map<string, KnownModel>();
  for (const { id, nextStep } of await modelTable.all()) {
    const folders = new Set((await modelTable.steps(id)).map(({ folder }) => folder));
    models.set(id, { folders, nextStep, interrupted: cut.has(id) });
  }
  const { removed, movedAside } = workspace.clearLeftovers({ jobs: new Set(open), models });
  if (removed.length > 0) log.info("removed files that belong to nothing", { count: removed.length });
  for (const { from, to } of movedAside) {
    log.warn("moved training files aside that the database does not know", { from, folder: to });
  }
}
