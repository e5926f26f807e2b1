// The states of a training job: PENDING → RUNNING → COMPLETED, FAILED or CANCELLED. The last three are final. A job
// whose server died while it was running goes back to PENDING.

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

/** Returns the new status. Throws if the change is not allowed. */
export function transition(from: JobStatus, to: JobStatus): JobStatus {
  if (!NEXT[from].includes(to)) throw new Error(`a job cannot go from ${from} to ${to}`);
  return to;
}
