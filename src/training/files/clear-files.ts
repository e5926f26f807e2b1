// Compares the files with the database and clears away what belongs to nothing: at the start of a server that is alone,
// and now and then where several servers share the files.

import type { TrainingContext } from "../context.ts";
import type { KnownFiles, KnownModel } from "./leftovers.ts";

export interface ClearOptions {
  /** Models whose job was running when the last server stopped. */
  interrupted: ReadonlySet<string>;
  /** Younger files stay: their row may be about to come. 0 = nobody else is at work. */
  minAgeMs: number;
}

export async function clearFiles(
  context: Pick<TrainingContext, "transaction" | "workspace" | "log">,
  options: ClearOptions,
): Promise<void> {
  const { workspace, log } = context;
  const known = await knownFiles(context, options.interrupted);
  const { removed, movedAside, unknown } = await workspace.clearLeftovers(known, options.minAgeMs);
  if (removed.length > 0) log.info("removed files that belong to nothing", { count: removed.length });
  for (const { from, to } of movedAside) {
    log.warn("moved training files aside that the database does not know", { from, folder: to });
  }
  for (const path of unknown) log.warn("the storage has a step that the database does not know", { path });
}

/** In one transaction: a job or a step that changes meanwhile must not be missed. */
function knownFiles(
  { transaction }: Pick<TrainingContext, "transaction">,
  interrupted: ReadonlySet<string>,
): Promise<KnownFiles> {
  return transaction(async ({ modelTable, jobTable, runTable, removedStepTable }) => {
    const models = new Map<string, KnownModel & { folders: Set<string> }>();
    for (const { id, nextStep } of await modelTable.all()) {
      models.set(id, { folders: new Set(), nextStep, interrupted: interrupted.has(id) });
    }
    for (const { modelId, folder } of await modelTable.folders()) models.get(modelId)?.folders.add(folder);
    const running = (await jobTable.withStatus("RUNNING")).map(({ id }) => id);
    const waiting = (await jobTable.withStatus("PENDING")).map(({ id }) => id);
    const removed = (await removedStepTable.all()).map(({ folder }) => folder);
    const gradients = await runTable.gradients();
    const jobs = new Set([...running, ...waiting]);
    return { models, running: new Set(running), jobs, gradients, removed: new Set(removed) };
  });
}
