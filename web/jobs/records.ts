// Jobs and their records as the server tells them.
import { ApiError } from "../../src/client/http.ts";
import type { TrainingJob } from "../../src/client/types.ts";
import type { Token } from "../playground/tokens.ts";
import { getJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { jobPath } from "../training-jobs.ts";

export interface RolloutRow {
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

interface RolloutException {
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
  trajectories: RolloutRow[];
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

/** One group; null: the job has no such group. */
export async function loadGroup(id: string, group: number, signal: AbortSignal): Promise<GroupRow | null> {
  const query = { limit: 1, after: group === 0 ? undefined : group - 1 };
  const { data } = await getJson<{ data: GroupRow[] }>(`${jobPath(id)}/groups`, { query, signal });
  return data.find((row) => row.group === group) ?? null;
}

/** All rewards are the same, so no rollout is better than another. */
export function isAlike({ rewards }: Pick<GroupRow, "rewards">): boolean {
  return rewards.length > 0 && rewards.every((reward) => reward === rewards[0]);
}

export function rolloutPath(job: string, group: string | number, trajectory: string | number): string {
  return `${jobPath(job)}/groups/${group}/trajectories/${trajectory}`;
}

/** A sentence if the trainer kept no numbers. */
export async function loadNumbers(path: string, signal: AbortSignal): Promise<TokenNumbers | string> {
  return getJson<TokenNumbers>(`${path}/tokens`, { signal }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return messageOf(error);
    throw error;
  });
}

// One rollout of a job: what was said, its tokens, and what the trainer computed for them.

export interface Sequence {
  tokens: number[];
  token_strings: string[];
  mask: (0 | 1)[];
  logprobs: (number | null)[];
  advantages: number[];
  gradient_step: number | null;
  gradient_step_tokens: number | null;
}

export interface Trajectory extends RolloutRow {
  job_id: string;
  model_id: string;
  job_status: TrainingJob["status"];
  group: number;
  size: number;
  from_step: number | null;
  weight: number | null;
  message: string | null;
  messages_and_choices: Record<string, unknown>[];
  tools: unknown[] | null;
  metadata: object | null;
  metrics: object | null;
  logs: unknown[] | null;
  sequences: Sequence[];
  exceptions: RolloutException[];
}

/** By the names of fields; a value per trained token. */
export interface TokenNumbers {
  sequences: { sequence: number; positions: number[]; values: Record<string, (number | null)[]> }[];
}

export function tokensOf({ tokens, token_strings, logprobs }: Sequence): Token[] {
  return tokens.map((id, i) => {
    const text = token_strings[i] ?? `⟨${id}⟩`;
    return { id, text, bytes: [], logprob: logprobs[i] ?? Number.NaN, top: [] };
  });
}
