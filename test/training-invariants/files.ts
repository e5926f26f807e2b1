// What must hold for the files of training (I2 and I5 of violations.ts): the rows and the folders agree.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Tables } from "../../src/store/tables/tables.ts";
import { stepDigest } from "../../src/training/files/step-folders.ts";
import type { JobFacts } from "./jobs.ts";

/**
 * I2: the steps of a model have different numbers below its counter and none is missing, each folder belongs to one row
 * and has the content that the row says, and the jobs that made steps made them in their own order.
 */
export async function wrongSteps(
  { modelTable, runTable }: Pick<Tables, "modelTable" | "runTable">,
  jobs: readonly JobFacts[],
  root: string,
  deleted: boolean,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const { id, nextStep, owner } of await modelTable.all()) {
    const say = (what: string) => wrong.push(`model ${id}: ${what}`);
    const steps = await modelTable.steps(id);
    const numbers = new Set(steps.map(({ step }) => step));
    if (numbers.size !== steps.length) say("a step number is used twice");
    if (new Set(steps.map(({ folder }) => folder)).size !== steps.length) say("a folder belongs to two steps");
    // an operation of a run may skip numbers
    const mayMiss = deleted || (await runTable.owned(id, owner)) !== null;
    // a fork begins with the number of the step that it copies
    for (let step = steps[0]?.step ?? 0; step < nextStep && !mayMiss; step++) {
      if (!numbers.has(step)) say(`step ${step} is missing`);
    }
    const made = jobs.filter(
      ({ model, toStep, kind }) => model === id && toStep !== null && kind !== "forward_backward",
    );
    if (made.some(({ toStep }, i) => i > 0 && toStep! <= made[i - 1]!.toStep!)) {
      say(`its jobs made the steps ${made.map(({ toStep }) => toStep).join(", ")} in this order`);
    }
    for (const { status, toStep } of made) {
      if (status !== "COMPLETED") say(`a job that is ${status} made step ${toStep}`);
      if (!deleted && !numbers.has(toStep!)) say(`a job made step ${toStep}, which does not exist`);
    }
    for (const { step, folder, digest, jobId } of steps) {
      if (step >= nextStep) say(`step ${step} is not below the counter, ${nextStep}`);
      const path = join(root, "models", id, folder);
      // I5 tells of one that is missing
      if (digest !== null && existsSync(path) && (await stepDigest(path)) !== digest) {
        say(`step ${step} has other files than its row`);
      }
      const job = jobs.find((one) => one.id === jobId && one.model === id);
      if (job && job.toStep !== step) say(`step ${step} is not the one that its job ${job.id} made`);
    }
  }
  return wrong;
}

/** I5: no folder of a row is missing, and none without a row is older than the grace. */
export async function wrongFolders(
  { modelTable, removedStepTable }: Pick<Tables, "modelTable" | "removedStepTable">,
  jobs: readonly JobFacts[],
  root: string,
  graceMs: number,
): Promise<string[]> {
  const wrong: string[] = [];
  const known = new Set((await removedStepTable.all()).map(({ folder }) => folder));
  const models = new Set((await modelTable.all()).map(({ id }) => id));
  for (const { modelId, folder } of await modelTable.folders()) {
    known.add(join(modelId, folder));
    if (!existsSync(join(root, "models", modelId, folder))) wrong.push(`${join(modelId, folder)} is missing`);
  }
  const unknown = (...path: string[]) => {
    const ageMs = Date.now() - statSync(join(root, ...path)).mtimeMs;
    if (ageMs >= graceMs) wrong.push(`${join(...path)} belongs to nothing for ${Math.round(ageMs / 1000)} s`);
  };
  for (const model of readdirSync(join(root, "models"))) {
    if (known.has(model)) continue;
    if (!models.has(model)) {
      unknown("models", model);
      continue;
    }
    for (const name of readdirSync(join(root, "models", model))) {
      if (!known.has(join(model, name)) && name !== "curves" && name !== "gradients") unknown("models", model, name);
    }
  }
  const open = new Set(jobs.filter(({ status }) => /PENDING|RUNNING/.test(status)).map(({ id }) => id));
  for (const job of readdirSync(join(root, "jobs"))) if (!open.has(job)) unknown("jobs", job);
  return wrong;
}
