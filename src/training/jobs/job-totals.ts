// What a job's report adds up to, for lists: the report itself may have thousands of entries.

import type { JobReport } from "./job-work.ts";

export interface JobTotals {
  /** 0 for examples, which have no groups. */
  groups: number;
  /** Groups whose rewards differ, so that there is something to learn. Absent in totals of earlier versions. */
  trainableGroups?: number;
  /** Or examples. */
  trajectories: number;
  trained: number;
  /** How many of them have each verdict. */
  byStatus: Record<string, number>;
  tokens: number;
  trainableTokens: number;
}

export function totalsOf({ trajectories, examples, totals }: JobReport): JobTotals {
  const entries: readonly { status: string; tokens: number; trainableTokens: number }[] =
    trajectories ?? examples ?? [];
  const byStatus: Record<string, number> = {};
  for (const { status } of entries) byStatus[status] = (byStatus[status] ?? 0) + 1;
  return {
    groups: totals.num_groups_submitted ?? 0,
    trainableGroups: totals.num_groups_trainable ?? 0,
    trajectories: entries.length,
    trained: byStatus.trained ?? 0,
    byStatus,
    tokens: entries.reduce((sum, { tokens }) => sum + tokens, 0),
    trainableTokens: entries.reduce((sum, { trainableTokens }) => sum + trainableTokens, 0),
  };
}
