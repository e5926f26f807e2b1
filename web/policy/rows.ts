// Policies, their steps and jobs as the server lists them, and what to say about them.
import { ago, percent } from "../format.ts";

export interface JobSummary {
  id: string;
  status: "PENDING" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED";
  progress: number | null;
  updated_at: string;
  error_message: string | null;
}

export interface PolicyRow {
  id: string;
  project: string;
  name: string;
  base_model: string;
  inference_name: string;
  created_at: string;
  latest_step: number;
  lora_rank: number;
  lora_alpha: number;
  bytes: number;
  open_jobs: number;
  recent_rewards: number[];
  forked_from: { model_id: string; step: number } | null;
  last_job: JobSummary | null;
}

export interface StepRow {
  id: string;
  step: number;
  metrics: Record<string, number>;
  created_at: string;
  job_id: string | null;
  bytes: number;
  origin: string;
}

export interface JobRow extends JobSummary {
  kind: string;
  from_step: number | null;
  step: number | null;
  totals: { trajectories: number; trained: number; by_status: Record<string, number> } | null;
}

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
export function verdictWords(totals: JobRow["totals"]): string {
  if (totals === null) return "";
  const parts = Object.entries(totals.by_status)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  return parts.map(([status, count]) => `${count} ${status}`).join(" · ");
}

export function matches(row: PolicyRow, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/);
  const text = `${row.name} ${row.project} ${row.base_model}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
