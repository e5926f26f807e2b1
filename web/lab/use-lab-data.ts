// What the lab computes with: the record of the job, of one of its rollouts, and what only the server can tell about those that
// were left out and about the reference policy.
import type { TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { type Groups, loadGroups, loadNumbers, rolloutPath, type Trajectory } from "../jobs/records.ts";
import { type Query, useQuery } from "../parts/use-query.ts";
import { score } from "../playground/scoring.ts";
import { getJson, postJson } from "../server.ts";
import { jobPath } from "../training-jobs.ts";
import type { Config } from "./knobs.ts";
import { placeOf } from "./signals.ts";
import type { Numbers } from "./token-loss.ts";

export interface JobData {
  job: TrainingJob;
  groups: Groups;
  policy: TrainableModel;
}

export function useJobData(id: string): Query<JobData> {
  return useQuery(id, async (signal) => {
    const job = await getJson<TrainingJob>(jobPath(id), { signal });
    const policy = await getJson<TrainableModel>(`/preview/models/${job.model_id}`, { signal });
    return { job, policy, groups: await loadGroups(id, Number.POSITIVE_INFINITY, signal) };
  });
}

export interface LabRolloutData {
  record: Trajectory;
  numbers: readonly Numbers[];
  /** Why there are no numbers; null if there are. */
  missing: string | null;
}

export function useLabRollout(id: string, group: number, trajectory: number): Query<LabRolloutData> {
  const path = rolloutPath(id, group, trajectory);
  return useQuery(path, async (signal) => {
    const record = await getJson<Trajectory>(path, { signal });
    if (record.status !== "trained") return { record, numbers: [], missing: "It was not trained." };
    const found = await loadNumbers(path, signal);
    return typeof found === "string"
      ? { record, numbers: [], missing: found }
      : { record, numbers: found.sequences, missing: null };
  });
}

/** A dry run of the job as it was. */
export interface DryRun {
  trajectories: {
    group: number;
    trajectory: number;
    status: string;
    message: string | null;
    advantage: number;
    num_trainable_tokens: number;
    sequences: { tokens: number[]; mask: (0 | 1)[]; logprobs: (number | null)[] }[];
  }[];
}

/** Tokens of rollouts that were left out: their record has none, so the server reads them again. */
export function useLeftOut(id: string, isNeeded: boolean): Query<ReadonlyMap<string, DryRun["trajectories"][number]>> {
  return useQuery(`${id} ${isNeeded}`, async (signal) => {
    if (!isNeeded) return new Map();
    const { trajectories } = await postJson<DryRun>(
      "/preview/training-jobs",
      { from_job: id, dry_run: true },
      { signal },
    );
    return new Map(trajectories.map((one) => [placeOf(one.group, one.trajectory), one]));
  });
}

/** Log-probabilities of every token of the sequences under the reference of the KL penalty; null if none is needed. */
export function useReference(
  { job, policy }: JobData,
  config: Config,
  sequences: readonly { tokens: readonly number[] }[],
  isNeeded: boolean,
): Query<number[][] | null> {
  const lag = config.kl_penalty_step_lag as number | null;
  const step = (config.kl_penalty_reference_step as number | null) ?? (lag === null ? 0 : (job.from_step ?? 0) - lag);
  const model = step <= 0 ? policy.base_model : `${policy.name}@${step}`;
  const key = isNeeded ? `${model} ${sequences.map(({ tokens }) => tokens.join()).join(";")}` : "";
  return useQuery(key, async (signal) => {
    if (!isNeeded) return null;
    const scored: number[][] = [];
    for (const { tokens } of sequences) {
      scored.push((await score(model, tokens, 0, 1, signal)).map(({ logprob }) => logprob));
    }
    return scored;
  });
}
