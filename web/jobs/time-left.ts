// How much longer a job will take, if it goes on as it went so far.
import type { TrainingJob } from "../../src/client/types.ts";

/** In milliseconds; null: nobody can tell yet, or it is over. `done`: gradient steps. */
export function timeLeft(
  {
    status,
    training_start: start,
    gradient_steps: steps,
  }: Pick<TrainingJob, "status" | "training_start" | "gradient_steps">,
  done: number,
  now: number,
): number | null {
  if (status !== "RUNNING" || start === null || steps === null || done === 0) return null;
  return ((now - Date.parse(start)) / done) * Math.max(0, steps.total - done);
}
