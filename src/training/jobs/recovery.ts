// Puts right what a server that crashed left behind, before anything else starts. Jobs that were running are taken over.
// Files without a row are removed, or moved aside if they may be worth something. Only for a server that is alone:
// others may be at work.

import type { TrainingContext } from "../context.ts";
import type { KnownModel } from "../files/leftovers.ts";
import type { JobJournal } from "./job-journal.ts";
import { takeOver } from "./take-over.ts";

export async function recover(context: TrainingContext, journal: JobJournal): Promise<void> {
  const { modelTable, jobTable, leaseTable, workspace, log } = context;
  const interrupted = await leaseTable.running({ expired: false });
  for (const claimed of interrupted) await takeOver(claimed, async () => {}, context, journal);
  const open = (await jobTable.withStatus("PENDING")).map(({ id }) => id);
  const cut = new Set(interrupted.map(({ job }) => job.modelId));
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
