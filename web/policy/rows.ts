// Policies, their steps and jobs as the server lists them, and what to say about them.
import type { JobTotals, TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { ago, number, percent } from "../format.ts";
import type { Note } from "../notes/notes.ts";
import { hasWords } from "../parts/word-filter.tsx";

/** What a list of policies says about the last job. */
export type JobSummary = NonNullable<TrainableModel["last_job"]>;

/** How many rollouts of a job there were, and what became of them. */
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

/** How much longer a job takes, in milliseconds, if it goes on as it went; null: nobody can tell yet, or it is over. */
export function timeLeft(
  job: Pick<TrainingJob, "status" | "training_start" | "gradient_steps">,
  stepsDone: number,
  now: number,
): number | null {
  const { status, training_start: start, gradient_steps: steps } = job;
  if (status !== "RUNNING" || start === null || steps === null || stepsDone === 0) return null;
  return ((now - Date.parse(start)) / stepsDone) * Math.max(0, steps.total - stepsDone);
}

/** Verdicts of a job, the most frequent first. */
export function verdictWords(totals: Verdicts | null, job: JobSummary["status"]): string {
  if (totals === null) return "";
  const parts = Object.entries(totals.by_status)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  return parts.map(([status, count]) => `${number(count)} ${verdictWord(status, job)}`).join(" · ");
}

/** Verdicts are given when a job begins. What it would train, it has not trained before it ends, and only then if it made a step. */
export function verdictWord(verdict: string, job: JobSummary["status"]): string {
  if (verdict !== "trained" || job === "COMPLETED") return verdict;
  return job === "CANCELLED" || job === "FAILED" ? "not trained" : "to train";
}

/** What a filter looks for in a note. */
export function textsOf(note: Pick<Note, "tags" | "text"> | undefined): string[] {
  return note === undefined ? [] : [...note.tags, note.text];
}

export function matches(row: TrainableModel, note: Pick<Note, "tags" | "text"> | undefined, filter: string): boolean {
  return hasWords([row.name, row.project, row.base_model, ...textsOf(note)], filter);
}
