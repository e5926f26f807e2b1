// Training jobs as the server knows them: where each is, and what happens to it.
import type { TrainingEvent } from "../src/client/types.ts";
import { follow } from "./follow.ts";

/** Below /v1. */
export function jobPath(id: string): string {
  return `/preview/training-jobs/${encodeURIComponent(id)}`;
}

/** Tells the events of a job to its end. Returns when the job is over or the signal says so. */
export async function followJob(
  id: string,
  onEvent: (event: TrainingEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  await follow(
    `${jobPath(id)}/events`,
    ({ data }) => {
      const event = JSON.parse(data) as TrainingEvent;
      onEvent(event);
      if (event.type === "training_ended" || event.type === "training_failed") over.abort();
    },
    AbortSignal.any([signal, over.signal]),
  );
}
