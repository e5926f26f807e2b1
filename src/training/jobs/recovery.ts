// Puts right what a server that crashed left behind, before anything else starts. Jobs that were running are taken over.
// Files without a row are removed, or moved aside if they may be worth something. Only for a server that is alone:
// others may be at work.

import type { TrainingContext } from "../context.ts";
import { clearFiles } from "../files/clear-files.ts";
import type { JobJournal } from "./job-journal.ts";
import { takeOver } from "./take-over.ts";

export async function recover(context: TrainingContext, journal: JobJournal): Promise<void> {
  // nobody writes anything now
  await context.accountTable.releaseAll();
  const interrupted = await context.leaseTable.running({ expired: false });
  for (const claimed of interrupted) await takeOver(claimed, async () => {}, context, journal);
  await clearFiles(context, { interrupted: new Set(interrupted.map(({ job }) => job.modelId)), minAgeMs: 0 });
}
