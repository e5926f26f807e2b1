// Trains on rated answers: finds or registers the policy, shows what would be trained, trains, and puts the new step beside
// the old one, asked the same question with the same seed.

import { effect, signal } from "@preact/signals";
import type { TrainableModel, TrainingEvent, TrainingJob, TrajectoryGroup } from "../../src/client/types.ts";
import { loadModels, models } from "../models.ts";
import { listPolicies } from "../policies.ts";
import { policyNamed } from "../policy-name.ts";
import { getJson, postJson } from "../server.ts";
import { apiKey, messageOf } from "../session.ts";
import { followJob, jobPath } from "../training-jobs.ts";
import { regenerate } from "./asking.ts";
import { change, lastSeed, sides, update } from "./state.ts";

export interface Verdict {
  trajectory: number;
  status: string;
  message: string | null;
  reward: number;
  advantage: number;
}

export type Lesson =
  | { state: "idle" }
  | { state: "looking"; turn: string }
  | { state: "looked"; turn: string; verdicts: Verdict[] }
  | { state: "training"; done: number; total: number | null; loss: number | null }
  | { state: "trained"; name: string; from: number; step: number; job: string }
  | { state: "failed"; turn: string; message: string };

export const lesson = signal<Lesson>({ state: "idle" });

effect(() => {
  if (apiKey.value === null) lesson.value = { state: "idle" };
});

/** What is taught to which policy. */
export interface Teaching {
  name: string;
  group: TrajectoryGroup;
  learningRate: number;
  /** The answers that were rated, and their column. */
  turn: string;
  column: number;
}

const PROJECT = "playground";

/** The policy of this name; registered if it is new. */
async function policyFor(name: string): Promise<{ id: string; name: string }> {
  const known = policyNamed(name, await listPolicies());
  if (known !== null) return known.policy;
  const base = models.value[0]!.id;
  const body = { project: PROJECT, name, base_model: base, return_existing: true };
  return postJson<TrainableModel>("/preview/models", body);
}

export async function look({ name, group, learningRate, turn }: Teaching): Promise<void> {
  lesson.value = { state: "looking", turn };
  await attempt(turn, async () => {
    const { id } = await policyFor(name);
    const { trajectories } = await postJson<{ trajectories: Verdict[] }>("/preview/training-jobs", {
      model_id: id,
      trajectory_groups: [group],
      experimental_config: { learning_rate: learningRate },
      dry_run: true,
    });
    lesson.value = { state: "looked", turn, verdicts: trajectories };
  });
}

export async function train({ name, group, learningRate, turn, column }: Teaching): Promise<void> {
  lesson.value = { state: "training", done: 0, total: null, loss: null };
  await attempt(turn, async () => {
    const policy = await policyFor(name);
    const { id } = await postJson<TrainingJob>("/preview/training-jobs", {
      model_id: policy.id,
      trajectory_groups: [group],
      experimental_config: { learning_rate: learningRate },
    });
    await followJob(id, note, new AbortController().signal);
    const job = await getJson<TrainingJob>(jobPath(id));
    if (job.status !== "COMPLETED") throw new Error(job.error_message ?? "The training job failed.");
    const [from, step] = [job.from_step!, job.step!];
    lesson.value = { state: "trained", name: policy.name, from, step, job: job.id };
    await loadModels();
    // both go on with the conversation that was taught
    update({ columns: sides.value.slice(column, column + 1).map((side) => side.column) });
    change({ models: [`${policy.name}@${from}`, `${policy.name}@${step}`], isCoupled: true, seed: lastSeed.value });
    await regenerate();
  });
}

function note({ type, data }: TrainingEvent): void {
  const now = lesson.value;
  if (now.state !== "training") return;
  if (type === "training_started") lesson.value = { ...now, total: data.num_sequences ?? null };
  if (type === "gradient_step") {
    lesson.value = { ...now, done: now.done + 1, loss: data["loss/train"] ?? data.loss ?? now.loss };
  }
}

async function attempt(turn: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    lesson.value = { state: "failed", turn, message: messageOf(error) };
  }
}
