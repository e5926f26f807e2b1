// What a start does before anything else: jobs that a dead server left running go back to the line (or end, if they were
// cancelled or keep bringing the server down), and files that belong to nothing are removed, or moved aside if they may be
// worth something.

import type { Log } from "../../observe/log.ts";
import type { JobTable } from "../../store/job-table.ts";
import type { ModelTable } from "../../store/model-table.ts";
import type { Workspace } from "../files/workspace.ts";
import { cancelled, failed, type Jobs } from "./jobs.ts";

export interface RecoveryDeps {
  models: ModelTable;
  jobTable: JobTable;
  jobs: Jobs;
  workspace: Workspace;
  log: Log;
}

/** A job that was running at this many crashes is taken to be their cause. */
const MAX_ATTEMPTS = 5;

export function recover({ models, jobTable, jobs, workspace, log }: RecoveryDeps): void {
  const interrupted = jobTable.withStatus("RUNNING");
  for (const job of interrupted) {
    workspace.makingRoom(() => {
      if (job.cancelRequested) jobs.finish(job.id, cancelled("cancelled"));
      else if (job.attempts >= MAX_ATTEMPTS) {
        jobs.finish(job.id, failed(`the server stopped ${job.attempts} times while this job was running`));
      } else {
        jobTable.requeue(job.id, true);
        log.info("training job resumed", { job: job.id, attempts: job.attempts });
      }
    });
  }
  const open = jobTable.withStatus("PENDING").map(({ id }) => id);
  const cut = new Set(interrupted.map(({ modelId }) => modelId));
  const known = models.all().map(({ id, nextStep }) => {
    const steps = new Set(models.steps(id).map(({ step }) => step));
    return [id, { steps, nextStep, interrupted: cut.has(id) }] as const;
  });
  const { removed, movedAside } = workspace.clearLeftovers({ jobs: new Set(open), models: new Map(known) });
  if (removed.length > 0) log.info("removed files that belong to nothing", { count: removed.length });
  for (const { from, to } of movedAside) {
    log.warn("moved training files aside that the database does not know", { from, folder: to });
  }
}
