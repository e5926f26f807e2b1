// Why rollouts were left out: the sentences of a job's report, each once.
import type { JobReport } from "../../src/client/types.ts";

export interface Reason {
  status: string;
  message: string;
  count: number;
  /** The first rollout that it is about. */
  group: number;
  trajectory: number;
}

/** The most frequent first. */
export function reasonsOf(report: JobReport | null | undefined): Reason[] {
  const found = new Map<string, Reason>();
  for (const { status, message, group, trajectory } of report?.trajectories ?? []) {
    if (message === null) continue;
    const key = `${status} ${message}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, { status, message, count: 1, group, trajectory });
    else known.count += 1;
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}
