// Trains a finished job once more, from the same step on a fork that goes again afterwards, and compares the two steps.

import type { Checkpoint, TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { callJson, getJson, postJson } from "../server.ts";
import { followJob, jobPath } from "../training-jobs.ts";

export interface Repetition {
  /** SHA-256 over the files of the step: adapter and optimizer. */
  first: string | null;
  again: string | null;
}

export async function repeatJob(job: TrainingJob, signal: AbortSignal): Promise<Repetition> {
  const model = (id: string) => `/preview/models/${encodeURIComponent(id)}`;
  const policy = await getJson<TrainableModel>(model(job.model_id), { signal });
  const fork = await postJson<TrainableModel>("/preview/models", {
    ...{ project: policy.project, base_model: policy.base_model, name: `${policy.name}-repeat-${Date.now()}` },
    from: { model_id: job.model_id, step: job.from_step },
  });
  try {
    const path = job.kind === "sft" ? "/preview/sft-training-jobs" : "/preview/training-jobs";
    const { id } = await postJson<TrainingJob>(path, { from_job: job.id, model_id: fork.id });
    await followJob(id, () => {}, signal);
    const again = await getJson<TrainingJob>(jobPath(id), { signal });
    if (again.status !== "COMPLETED") throw new Error(again.error_message ?? "The repetition made no step.");
    const digest = async (of: TrainingJob) =>
      (await getJson<Checkpoint>(`${model(of.model_id)}/checkpoints/${of.step}`, { signal })).digest;
    return { first: await digest(job), again: await digest(again) };
  } finally {
    await callJson("DELETE", model(fork.id));
  }
}
