// What a start does before anything else: jobs that a dead server left running go back to the line (or end, if they were
// cancelled or keep bringing the server down), and files that belong to nothing are removed.

import type { Log } from "../observe/log.ts";
import type { JobTable } from "../store/job-table.ts";
import type { ModelTable } from "../store/model-table.ts";
import { cancelled, failed, type Jobs } from "./jobs.ts";
import type { Workspace } from "./workspace.ts";

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
  for (const job of jobTable.withStatus("RUNNING")) {
    if (job.cancelRequested) jobs.finish(job.id, cancelled("cancelled"));
    else if (job.attempts >= MAX_ATTEMPTS) {
      jobs.finish(job.id, failed(`the server stopped ${job.attempts} times while this job was running`));
    } else {
      jobTable.requeue(job.id, true);
      log.info("training job resumed", { job: job.id, attempts: job.attempts });
    }
  }
  const open = jobTable.withStatus("PENDING").map(({ id }) => id);
  const steps = models.all().map(({ id }) => [id, new Set(models.steps(id).map(({ step }) => step))] as const);
  const removed = workspace.removeOrphans({ jobs: new Set(open), steps: new Map(steps) });
  if (removed.length > 0) log.info("removed files that belong to nothing", { count: removed.length });
}
