// The states of a training job: PENDING → RUNNING → COMPLETED, FAILED or CANCELLED. The last three are final. A job that
// waits may be cancelled; one whose server stopped or died while it was running goes back to PENDING.

export const JOB_STATUSES = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export function isFinal(status: JobStatus): boolean {
  return status !== "PENDING" && status !== "RUNNING";
}
