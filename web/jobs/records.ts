// Jobs and their records as the server tells them.
import { ApiError } from "../../src/client/http.ts";
import { getJson } from "../server.ts";
import { messageOf } from "../session.ts";
import type { TokenNumbers } from "./trajectory.ts";

export interface TryRow {
  trajectory: number;
  reward: number | null;
  advantage: number | null;
  /** The verdict; null before the job trains. */
  status: string | null;
  tokens: number | null;
  trainable_tokens: number | null;
  /** The step it began with. */
  initial_policy_version: number | null;
}

export interface RolloutException {
  type: string | null;
  message: string;
}

export interface GroupRow {
  group: number;
  task: string | null;
  rewards: number[];
  mean: number | null;
  spread: number | null;
  verdicts: Record<string, number>;
  trajectories: TryRow[];
  exceptions: RolloutException[];
}

/** The groups that were loaded, and whether the server has more. */
export interface Groups {
  rows: GroupRow[];
  hasMore: boolean;
  /** Why there is no record; null if there is one. */
  missing: string | null;
}

export const GROUPS_PER_PAGE = 1000;
/** How many are asked for at once: reading more would keep the page busy for longer than a frame. */
const GROUPS_AT_ONCE = 200;

export function jobPath(id: string): string {
  return `/preview/training-jobs/${encodeURIComponent(id)}`;
}

/** The first `pages` pages. A record that is gone is no error: the rest of the job can still be read. */
export async function loadGroups(id: string, pages: number, signal: AbortSignal): Promise<Groups> {
  const rows: GroupRow[] = [];
  let hasMore = true;
  try {
    while (rows.length < pages * GROUPS_PER_PAGE && hasMore) {
      const query = { limit: GROUPS_AT_ONCE, after: rows.at(-1)?.group };
      const answer = await getJson<{ data: GroupRow[]; has_more: boolean }>(`${jobPath(id)}/groups`, { query, signal });
      rows.push(...answer.data);
      hasMore = answer.has_more;
    }
  } catch (error) {
    if (error instanceof ApiError && error.status === 410)
      return { rows: [], hasMore: false, missing: messageOf(error) };
    throw error;
  }
  return { rows, hasMore, missing: null };
}

/** All rewards are the same, so no rollout is better than another. */
export function isAlike({ rewards }: Pick<GroupRow, "rewards">): boolean {
  return rewards.length > 0 && rewards.every((reward) => reward === rewards[0]);
}

export function tryPath(job: string, group: string | number, trajectory: string | number): string {
  return `${jobPath(job)}/groups/${group}/trajectories/${trajectory}`;
}

/** A sentence if the trainer kept no numbers. */
export async function loadNumbers(path: string, signal: AbortSignal): Promise<TokenNumbers | string> {
  return getJson<TokenNumbers>(`${path}/tokens`, { signal }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return messageOf(error);
    throw error;
  });
}
