// The life of a training job. PENDING -> RUNNING -> COMPLETED | FAILED | CANCELLED; a running job whose server died goes
// back to PENDING. The three last states are final.

export const JOB_STATUSES = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

const NEXT: Readonly<Record<JobStatus, readonly JobStatus[]>> = {
  PENDING: ["RUNNING", "FAILED", "CANCELLED"],
  RUNNING: ["PENDING", "COMPLETED", "FAILED", "CANCELLED"],
  COMPLETED: [],
  FAILED: [],
  CANCELLED: [],
};

export function isFinal(status: JobStatus): boolean {
  return NEXT[status].length === 0;
}

/** The new status, or an error for a change that cannot happen. */
export function transition(from: JobStatus, to: JobStatus): JobStatus {
  if (!NEXT[from].includes(to)) throw new Error(`a job cannot go from ${from} to ${to}`);
  return to;
}
