// What happened to policies, steps and jobs, and what it changes in rows that are shown. Progress, the most frequent of them,
// goes into the rows at once. Everything else changes numbers that only the server has, such as sizes: ask again.
import type { TrainableModel } from "../../src/client/types.ts";
import type { JobSummary } from "./rows.ts";

export type News =
  | { event: "job"; data: Pick<JobSummary, "id" | "status" | "progress" | "updated_at"> & { model_id: string } }
  | { event: "job_event"; data: { job_id: string; event: { type: string } } }
  | { event: "step"; data: { model_id: string; step: number } }
  | { event: "model"; data: { id: string; deleted: boolean } }
  | { event: "ready"; data: { complete: boolean } };

export interface Merged<Row> {
  rows: readonly Row[];
  /** The rows no longer tell everything. */
  isStale: boolean;
}

/** News of the list of policies. */
export function mergePolicies(rows: readonly TrainableModel[], news: readonly News[]): Merged<TrainableModel> {
  let now = rows;
  let isStale = false;
  for (const { event, data } of news) {
    if (event === "job_event") continue;
    if (event === "model" && data.deleted) now = now.filter(({ id }) => id !== data.id);
    else if (event === "job" && now.some(({ last_job }) => isSameState(last_job, data))) {
      now = now.map((row) =>
        row.id === data.model_id ? { ...row, last_job: { ...row.last_job!, ...stateOf(data) } } : row,
      );
    } else isStale = true;
  }
  return { rows: now, isStale };
}

/** News of the jobs of one policy; null: of all. Stale if anything else happened to it. */
export function mergeJobs<Row extends JobSummary>(
  rows: readonly Row[],
  modelId: string | null,
  news: readonly News[],
): Merged<Row> {
  let now = rows;
  let isStale = false;
  const isOurs = (id: string) => modelId === null || id === modelId;
  for (const { event, data } of news) {
    if (event === "job" && isOurs(data.model_id)) {
      if (now.some((row) => isSameState(row, data))) {
        now = now.map((row) => (row.id === data.id ? { ...row, ...stateOf(data) } : row));
      } else isStale = true;
    } else if (event === "step" && isOurs(data.model_id)) isStale = true;
    else if (event === "ready" || (event === "model" && isOurs(data.id))) isStale = true;
  }
  return { rows: now, isStale };
}

/** Whether a gradient step was made by one of these jobs. */
export function hasGradientStep(jobs: readonly { id: string }[], news: readonly News[]): boolean {
  return news.some(
    ({ event, data }) =>
      event === "job_event" && data.event.type === "gradient_step" && jobs.some(({ id }) => id === data.job_id),
  );
}

type JobNews = Extract<News, { event: "job" }>["data"];

/** Whether the news is only of progress. */
function isSameState(known: JobSummary | null, { id, status }: JobNews): boolean {
  return known !== null && known.id === id && known.status === status;
}

function stateOf({ status, progress, updated_at }: JobNews) {
  return { status, progress, updated_at };
}
