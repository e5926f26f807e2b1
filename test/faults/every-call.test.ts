// SQLite's loop: an operation is run again and again, and each time the next of its calls to disk, database and engine fails,
// until none is left. Whatever failed, nothing is lost, nothing is half, the error is clear, and the operation works afterwards.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { fromTraining } from "../../src/api/training/routes.ts";
import { OperatorError } from "../../src/errors/faults.ts";
import { toServiceError } from "../../src/errors/service-error.ts";
import { newModel } from "../support/training-service.ts";
import { wrongFolders } from "../training-invariants/files.ts";
import { readJobs } from "../training-invariants/jobs.ts";
import { violations } from "../training-invariants/violations.ts";
import { type Call, FaultPoints, failEach, WAYS, type Way } from "./fault-points.ts";
import { breakDisk } from "./faulty-disk.ts";
import { JobFailed, OPERATIONS, type Operation } from "./operations.ts";
import { RUN_OPERATIONS } from "./run-operations.ts";
import { idle, MEMORY, openScene, overOf, quickRetries, type Scene, submitJob } from "./scene.ts";

const noFaults = () => new FaultPoints(WAYS[0]!, 0);

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(MEMORY, "faults-"));
  quickRetries();
});
afterAll(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true, force: true });
});

interface Template {
  folder: string;
  /** Id of the model that the operation is about. */
  agent: string;
  /** Id of the model that it must not touch. */
  keep: string;
}

async function makeTemplate(operation: Operation): Promise<Template> {
  const { name, steps = 0, waiting = false, make, begin, wait = submitJob } = operation;
  const folder = join(root, name.replaceAll(" ", "-"));
  const scene = await openScene(makeFolder(folder), noFaults(), { runsJobs: true });
  const keep = (await newModel(scene.bench, "keep")).id;
  await overOf(scene, (await submitJob(scene, keep)).id);
  const agent = (await make?.(scene)) ?? (await newModel(scene.bench, "agent")).id;
  for (let i = 0; i < steps; i++) await overOf(scene, (await submitJob(scene, agent)).id);
  await begin?.(scene, agent);
  await scene.close();
  if (waiting) {
    const later = await openScene(folder, noFaults());
    await wait(later, agent);
    await later.close();
  }
  return { folder, agent, keep };
}

function makeFolder(folder: string): string {
  mkdirSync(folder);
  return folder;
}

/** Everything that the database says of a model. */
async function rowsOf({ store }: Scene, model: string): Promise<unknown> {
  return Promise.all([
    store.all("SELECT * FROM models WHERE id = ?1", model),
    store.all("SELECT * FROM steps WHERE model_id = ?1 ORDER BY step", model),
    store.all("SELECT * FROM jobs WHERE model_id = ?1 ORDER BY seq", model),
    store.all(
      "SELECT job_events.* FROM job_events JOIN jobs ON jobs.id = job_id WHERE model_id = ?1 ORDER BY 1",
      model,
    ),
  ]);
}

/** What clients are told, by the way in which a call failed. */
function unclear(error: unknown, way: Way, { device }: Call, folder: string): string | null {
  if (!(error instanceof Error) || error.message === "") return "it says nothing";
  // a line for the operator, who knows the paths
  if (error instanceof OperatorError) return null;
  if (error instanceof JobFailed) {
    if (error.message.includes(folder)) return "it names a path of the server";
    if (way.name === "full") return /disk is full/.test(error.message) ? null : error.message;
    return null;
  }
  const { code, message } = toServiceError(fromTraining(error));
  if (message.includes(folder)) return "it names a path of the server";
  if (way.name === "full") return code === "storage_full" ? null : code;
  if (way.name === "away") return code === "store_unavailable" || code === "engine_unavailable" ? null : code;
  if (device === "database" && /lost/.test(way.name)) return code === "outcome_unknown" ? null : code;
  return null;
}

describe.each([...OPERATIONS, ...RUN_OPERATIONS].map((operation) => [operation.name, operation] as const))(
  "%s",
  (_name, operation) => {
    let template: Template;
    beforeAll(async () => {
      template = await makeTemplate(operation);
    });

    it.each(WAYS.map((way) => [way.name, way] as const))("ends well, %s", async (_name, way) => {
      const { wrong, calls } = await failEach((number) => attempt(operation, template, way, number));
      console.log(`${operation.name}, ${way.name}: ${calls} calls`);
      expect(wrong).toEqual([]);
      expect(calls).toBeGreaterThan(0);
    });
  },
);

async function attempt(operation: Operation, { folder: source, agent, keep }: Template, way: Way, number: number) {
  const folder = join(root, `run-${operation.name.replaceAll(" ", "-")}`);
  rmSync(folder, { recursive: true, force: true });
  cpSync(source, folder, { recursive: true });
  const faults = new FaultPoints(way, number);
  const mend = breakDisk(folder, faults);
  const problems: string[] = [];
  const say = (what: string) => problems.push(what);
  let scene: Scene;
  try {
    scene = await openScene(folder, faults, operation);
    const before = await rowsOf(scene, keep);
    if (operation.held && operation.during === undefined) await scene.trainer.inTheMiddle;
    if (operation.during === undefined) faults.begin();
    let error: unknown = null;
    await operation.run(scene, agent).catch((thrown: unknown) => {
      error = thrown ?? new Error("nothing was thrown");
    });
    if (!operation.held) await idle(scene);
    faults.end();
    const { hit } = faults;
    const effect = await operation.effect(scene, agent);
    if (effect.startsWith("half")) say(effect);
    if (error === null && effect !== "after") say(`it worked, but is ${effect}`);
    if (error !== null && hit === null) say(`it failed: ${(error as Error).stack}`);
    if (error !== null && hit !== null) {
      const problem = unclear(error, way, hit, folder);
      if (problem !== null) say(`unclear: ${problem} (${(error as Error).message})`);
      const mayBe = operation.inSteps || way.afterwards;
      if (effect === "after" && !mayBe) say(`it failed with "${(error as Error).message}", but took effect`);
    }
    if (JSON.stringify(await rowsOf(scene, keep)) !== JSON.stringify(before)) say("it changed another model");
    await operation.again(scene, agent).catch((thrown: Error) => say(`cannot be done again: ${thrown.stack}`));
    if (operation.held) {
      scene.trainer.letGo();
      await idle(scene);
    }
    if (scene.bench.service.policies.inUse(agent, null)) say("somebody still holds a step");
    if (scene.bench.slots.list().some(({ requests }) => requests > 0)) say("somebody still holds an adapter");
    await scene.bench.service.tidyAccounts();
    const { use } = await scene.bench.service.account("me");
    if (use.reserved > 0) say(`${use.reserved} bytes are still reserved`);
    const training = join(folder, "training");
    const left = await wrongFolders(scene.tables, await readJobs(scene.store), training, 0);
    const mayBeLeft = hit?.kind === "removal" || way.name === "lost commit" || way.afterwards;
    if (!mayBeLeft) for (const path of left) say(path);
    await scene.close();

    // a start clears away what is left, and all jobs end
    scene = await openScene(folder, noFaults(), { runsJobs: true });
    for (const { id, status } of await readJobs(scene.store))
      if (/PENDING|RUNNING/.test(status)) await overOf(scene, id);
    await idle(scene);
    const stepsDeleted = operation.name === "delete a step";
    for (const violation of await violations({ store: scene.store, folder: training, stepsDeleted })) say(violation);
    if (existsSync(join(training, "orphans"))) say("files were moved aside");
    await scene.close();
    for (const model of [agent, keep])
      for (const line of repeatedLines(training, model)) say(`a curve has ${line} twice`);
    return { faults, problems };
  } finally {
    mend();
  }
}

/** Gradient steps that a curve has more than once. */
function repeatedLines(training: string, model: string): number[] {
  const file = join(training, "models", model, "curves", "metrics.jsonl");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const steps = lines.map((line) => (JSON.parse(line) as { gradient_step: number }).gradient_step);
  return steps.filter((step, i) => steps.indexOf(step) !== i);
}
