// Policies, their steps and jobs as the server lists them, and what to say about them.
import type { JobTotals, TrainableModel } from "../../src/client/types.ts";
import { ago, percent } from "../format.ts";

/** What a list of policies says about the last job. */
export type JobSummary = NonNullable<TrainableModel["last_job"]>;

/** How many tries of a job there were, and what became of them. */
export type Verdicts = Pick<JobTotals, "groups" | "trainable_groups" | "trajectories" | "trained" | "by_status">;

export type Mood = "good" | "warn" | "bad" | "";

/** A job in a few words. */
export function jobWords(
  { status, progress, updated_at, error_message }: JobSummary,
  now: number,
): { text: string; mood: Mood } {
  switch (status) {
    case "PENDING":
      return { text: "○ waiting", mood: "" };
    case "RUNNING":
      return { text: `● running ${percent(progress ?? 0)}`, mood: "good" };
    case "COMPLETED":
      return { text: `✓ ${ago(updated_at, now)}`, mood: "" };
    case "FAILED":
      return { text: `✗ failed: ${error_message ?? "no reason given"}`, mood: "bad" };
    case "CANCELLED":
      return { text: `cancelled ${ago(updated_at, now)}`, mood: "warn" };
  }
}

/** Verdicts of a job, the most frequent first. */
export function verdictWords(totals: Verdicts | null): string {
  if (totals === null) return "";
  const parts = Object.entries(totals.by_status)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  return parts.map(([status, count]) => `${count} ${status}`).join(" · ");
}

export function matches(row: TrainableModel, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/);
  const text = `${row.name} ${row.project} ${row.base_model}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
