// What must hold for the files of training whenever no server is at work: the rows and the folders agree. Each function
// returns what is wrong, a line each, so that a test can show all of it.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Tables } from "../../src/store/tables.ts";
import { stepDigest } from "../../src/training/files/step-digest.ts";

type StepTables = Pick<Tables, "modelTable" | "jobTable">;

/**
 * I2: the steps of a model have different numbers below its counter, each folder belongs to one row and has the content
 * that the row says, and the jobs that made steps made them in their own order.
 */
export async function wrongSteps({ modelTable, jobTable }: StepTables, root: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const { id, nextStep } of await modelTable.all()) {
    const steps = await modelTable.steps(id);
    const say = (what: string) => wrong.push(`model ${id}: ${what}`);
    if (new Set(steps.map(({ step }) => step)).size !== steps.length) say("a step number is used twice");
    if (new Set(steps.map(({ folder }) => folder)).size !== steps.length) say("a folder belongs to two steps");
    let before = "";
    for (const { step, folder, digest, jobId } of steps) {
      if (step >= nextStep) say(`step ${step} is not below the counter, ${nextStep}`);
      const path = join(root, "models", id, folder);
      if (!existsSync(path)) say(`step ${step} has no folder ${folder}`);
      else if (digest !== null && (await stepDigest(path)) !== digest) say(`step ${step} has other files than its row`);
      const job = jobId === null ? null : await jobTable.get(jobId);
      if (!job) continue;
      if (job.modelId === id && job.toStep !== step) say(`step ${step} is not the one that its job ${job.id} made`);
      if (job.modelId === id && job.createdAt < before)
        say(`step ${step} comes from an older job than the step before`);
      if (job.modelId === id) before = job.createdAt;
    }
  }
  return wrong;
}

/** I5: no folder of a row is missing, and none without a row is older than the grace. */
export async function wrongFolders(
  { modelTable }: Pick<Tables, "modelTable">,
  root: string,
  graceMs: number,
): Promise<string[]> {
  const wrong: string[] = [];
  const known = new Set<string>();
  for (const { id } of await modelTable.all()) {
    for (const { folder } of await modelTable.steps(id)) known.add(join(id, folder));
  }
  for (const path of known) if (!existsSync(join(root, "models", path))) wrong.push(`${path} is missing`);
  for (const model of readdirSync(join(root, "models"))) {
    for (const name of readdirSync(join(root, "models", model))) {
      const path = join(model, name);
      if (known.has(path) || name === "curves" || name === "gradients") continue;
      const ageMs = Date.now() - statSync(join(root, "models", path)).mtimeMs;
      if (ageMs > graceMs) wrong.push(`${path} belongs to nothing for ${Math.round(ageMs / 1000)} s`);
    }
  }
  return wrong;
}
