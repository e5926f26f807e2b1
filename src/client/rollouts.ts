// Gathers rollouts in groups: several attempts at each scenario, with bounded concurrency, retries and progress reports.
// An attempt that keeps failing becomes an exception of its group. The others continue.

import type { Trajectory, TrajectoryGroup } from "./types.ts";

export interface RolloutOptions<Scenario> {
  scenarios: readonly Scenario[];
  /** Attempts per scenario. */
  groupSize: number;
  /** Makes one attempt: a conversation with its reward, or several if one request returned several choices (`n`). */
  rollout: (scenario: Scenario, attempt: RolloutAttempt) => Promise<Trajectory | Trajectory[]>;
  /** Attempts that run at the same time. Default 16. */
  concurrency?: number;
  /** Retries of a failed attempt. Default 1. */
  maxRetries?: number;
  onProgress?: (progress: RolloutProgress) => void;
  signal?: AbortSignal;
}

export interface RolloutAttempt {
  /** Index in its group. */
  index: number;
  signal: AbortSignal;
}

export interface RolloutProgress {
  done: number;
  total: number;
  failed: number;
  /** Mean reward so far. */
  reward: number;
}

/** Returns one group per scenario. Attempts keep their order, whichever finished first, so the same replies train the same way. */
export async function gatherGroups<Scenario>(options: RolloutOptions<Scenario>): Promise<TrajectoryGroup[]> {
  const { scenarios, groupSize, rollout, maxRetries = 1, onProgress } = options;
  const signal = options.signal ?? new AbortController().signal;
  const results = scenarios.map(() => new Array<AttemptResult>(groupSize));
  const work = scenarios.flatMap((scenario, group) =>
    Array.from({ length: groupSize }, (_, index) => ({ scenario, group, index })),
  );
  const progress = { done: 0, total: work.length, failed: 0, reward: 0 };
  const rewards: number[] = [];

  const attempt = async ({ scenario, group, index }: (typeof work)[number]) => {
    // Each try gets its own signal. SDKs leave listeners on it, and on a shared one they would pile up.
    const tryOnce = () => rollout(scenario, { index, signal: AbortSignal.any([signal]) });
    const result = await withRetries(tryOnce, maxRetries, signal);
    results[group]![index] = result;
    progress.done++;
    if (result.failure !== null) progress.failed++;
    rewards.push(...result.trajectories.map(({ reward }) => reward));
    progress.reward = rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(1, rewards.length);
    onProgress?.({ ...progress });
  };
  let next = 0;
  const worker = async () => {
    while (next < work.length) {
      signal.throwIfAborted();
      await attempt(work[next++]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrency ?? 16, work.length) }, worker));
  return results.map((attempts) => ({
    trajectories: attempts.flatMap(({ trajectories }) => trajectories),
    exceptions: attempts.flatMap(({ failure }) => failure ?? []),
  }));
}

interface AttemptResult {
  trajectories: Trajectory[];
  /** Null if the attempt succeeded. */
  failure: Failure | null;
}

interface Failure {
  type: string;
  message: string;
}

async function withRetries(
  attempt: () => Promise<Trajectory | Trajectory[]>,
  maxRetries: number,
  signal: AbortSignal,
): Promise<AttemptResult> {
  for (let tries = 0; ; tries++) {
    try {
      return { trajectories: [await attempt()].flat(), failure: null };
    } catch (error) {
      signal.throwIfAborted();
      if (tries < maxRetries) continue;
      const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
      return { trajectories: [], failure: { type: name, message } };
    }
  }
}
