// Rollouts in groups: several attempts at each scenario, a bounded number at a time, another try for those that fail,
// progress along the way. An attempt that keeps failing becomes an exception of its group, never the end of the others.

import type { Trajectory, TrajectoryGroup } from "./types.ts";

export interface RolloutOptions<Scenario> {
  scenarios: readonly Scenario[];
  /** Attempts per scenario. */
  groupSize: number;
  /** One attempt: a conversation with its reward. Several, when one request gave several choices (`n`). */
  rollout: (scenario: Scenario, attempt: RolloutAttempt) => Promise<Trajectory | Trajectory[]>;
  /** Attempts at the same time. */
  concurrency?: number;
  /** Tries after a failed one. */
  maxRetries?: number;
  onProgress?: (progress: RolloutProgress) => void;
  signal?: AbortSignal;
}

export interface RolloutAttempt {
  /** Place in its group. */
  index: number;
  signal: AbortSignal;
}

export interface RolloutProgress {
  done: number;
  total: number;
  failed: number;
  /** Mean reward of what is done. */
  reward: number;
}

/** One group per scenario, its attempts in order, whichever came first: the same replies train the same way. */
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
    // A signal of its own per try: SDKs leave listeners on it, and on a shared one they would pile up.
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

/** What an attempt gave; null = it did not fail. */
interface AttemptResult {
  trajectories: Trajectory[];
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
