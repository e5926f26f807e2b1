// What must be true of a store and its training files whatever happened to the servers: crashes, pauses, cut connections.
// Every test that causes such things calls it at the end, when no job is open any more.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../../src/store/store.ts";
import { stepDigest } from "../../src/training/files/step-digest.ts";

export interface Evidence {
  store: Store;
  /** The folder of training files. */
  folder: string;
  /** Ids of jobs that were accepted. Without it, those in the table. */
  accepted?: readonly string[];
  /** Replies with a status of 500 or more that clients saw. */
  serverErrors?: readonly ServerError[];
  /** Files without a row may be this old, in milliseconds: a server may be at work on them. */
  graceMs?: number;
}

export interface ServerError {
  status: number;
  /** What was asked, and the reply. */
  message: string;
  /** Whether it says when to try again. */
  retryAfter: boolean;
}

interface JobFacts {
  id: string;
  model: string;
  status: string;
  kind: string;
  toStep: number | null;
  seq: number;
}

interface StepFacts {
  step: number;
  jobId: string | null;
  /** null: "step-N", from before rows had it. */
  folder: string | null;
  digest: string | null;
}

const FINAL = new Set(["COMPLETED", "FAILED", "CANCELLED"]);
const ENDS = new Set(["training_ended", "training_failed", "operation_ended"]);

/** Returns what is wrong, one sentence each. */
export async function violations(evidence: Evidence): Promise<string[]> {
  const { store } = evidence;
  const jobs = await store.all<JobFacts>(
    `SELECT id, model_id AS model, status, kind, to_step AS "toStep", seq FROM jobs ORDER BY seq`,
  );
  return [
    ...acceptedOnes(jobs, evidence.accepted),
    ...(await eventsOf(jobs, store)),
    ...(await stepsOf(jobs, evidence)),
    ...undeclared(evidence.serverErrors ?? []),
  ];
}

/** Every accepted job has ended. That it ended once is in its events. */
function acceptedOnes(jobs: readonly JobFacts[], accepted: readonly string[] = jobs.map(({ id }) => id)): string[] {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return accepted.flatMap((id) => {
    const job = byId.get(id);
    if (!job) return [`the accepted job ${id} is gone`];
    return FINAL.has(job.status) ? [] : [`job ${id} is ${job.status}`];
  });
}

/** One start, in order, nothing twice, one end. */
async function eventsOf(jobs: readonly JobFacts[], store: Store): Promise<string[]> {
  const wrong: string[] = [];
  for (const { id, status, kind } of jobs) {
    const rows = await store.all<{ type: string; data: string }>(
      "SELECT type, data FROM job_events WHERE job_id = ?1 ORDER BY seq",
      id,
    );
    const types = rows.map(({ type }) => type);
    const told = `job ${id} (${status}) has the events ${types.join(", ")}`;
    const count = (type: string) => types.filter((one) => one === type).length;
    if (FINAL.has(status) && types.filter((type) => ENDS.has(type)).length !== 1) wrong.push(`${told}: not one end`);
    if (FINAL.has(status) && !ENDS.has(types.at(-1) ?? "")) wrong.push(`${told}: the end is not last`);
    if (count("training_started") > 1) wrong.push(`${told}: more than one start`);
    if (count("training_started") === 1 && types[0] !== "training_started")
      wrong.push(`${told}: the start is not first`);
    if (status !== "COMPLETED" || (kind !== "rl" && kind !== "sft")) continue;
    const planned = (JSON.parse(rows[0]!.data) as { num_sequences?: number }).num_sequences;
    if (count("gradient_step") !== planned) wrong.push(`${told}: not the ${planned} gradient steps of its start`);
  }
  return wrong;
}

/** Steps are unique and in the order of their jobs, and every row has its folder and every folder its row. */
async function stepsOf(jobs: readonly JobFacts[], { store, folder, graceMs = 0 }: Evidence): Promise<string[]> {
  const wrong: string[] = [];
  const models = await store.all<{ id: string }>("SELECT id FROM models");
  for (const { id } of models) {
    const rows = await store.all<StepFacts>(
      `SELECT step, job_id AS "jobId", folder, digest FROM steps WHERE model_id = ?1 ORDER BY step`,
      id,
    );
    const made = jobs.filter(({ model, status, toStep }) => model === id && status === "COMPLETED" && toStep !== null);
    const makers = made.filter(({ kind }) => kind !== "forward_backward");
    const numbers = makers.map(({ toStep }) => toStep!);
    if (numbers.some((step, i) => i > 0 && step <= numbers[i - 1]!)) {
      wrong.push(`the jobs of model ${id} made the steps ${numbers.join(", ")} in this order`);
    }
    for (const { step, jobId } of rows) {
      const maker = makers.find(({ toStep }) => toStep === step);
      if (jobId !== null && jobs.some((job) => job.id === jobId && job.model === id) && maker?.id !== jobId) {
        wrong.push(`step ${step} of model ${id} belongs to job ${jobId}, but ${maker?.id ?? "no job"} made it`);
      }
    }
    wrong.push(...(await filesOf(id, rows, join(folder, "models", id), graceMs)));
  }
  return wrong;
}

async function filesOf(model: string, rows: readonly StepFacts[], place: string, graceMs: number): Promise<string[]> {
  const names = new Set(existsSync(place) ? readdirSync(place) : []);
  const wrong: string[] = [];
  const known = new Set(["curves", "gradients"]);
  for (const { step, folder, digest } of rows) {
    const name = folder ?? `step-${step}`;
    known.add(name);
    if (!names.has(name)) wrong.push(`step ${step} of model ${model} has no folder ${name}`);
    else if (digest !== null && (await stepDigest(join(place, name))) !== digest) {
      wrong.push(`the files of step ${step} of model ${model} are not those of its row`);
    }
  }
  for (const name of names) {
    if (known.has(name) || Date.now() - statSync(join(place, name)).mtimeMs < graceMs) continue;
    wrong.push(`${name} of model ${model} belongs to nothing`);
  }
  return wrong;
}

/** While a server stops, the database is away or the disk is full, clients are told so, and when to try again. */
function undeclared(errors: readonly ServerError[]): string[] {
  return errors
    .filter(({ status, retryAfter }) => status !== 507 && !(status === 503 && retryAfter))
    .map(({ status, message }) => `a client got ${status}: ${message}`);
}
