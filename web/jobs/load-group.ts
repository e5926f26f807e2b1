// One group of a job.
import { getJson } from "../server.ts";
import { type GroupRow, jobPath } from "./records.ts";

/** null: the job has no such group. */
export async function loadGroup(job: string, group: number, signal: AbortSignal): Promise<GroupRow | null> {
  const query = { limit: 1, after: group === 0 ? undefined : group - 1 };
  const { data } = await getJson<{ data: GroupRow[] }>(`${jobPath(job)}/groups`, { query, signal });
  return data.find((row) => row.group === group) ?? null;
}
