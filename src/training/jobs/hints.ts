// What servers on one store tell each other. A hint may get lost: every server also looks for itself, only later.

/** A job waits for a worker. */
export const JOB_WAITING = "job_waiting";

/** The job with this id has a new event, or is gone. */
export const JOB_NEWS = "job_news";

/** The running job with this id is to be cancelled. */
export const JOB_CANCEL = "job_cancel";
