// The operations of training runs whose every call fails once: an optimizer step, publishing what it made under a
// name, and cancelling one.

import { expect } from "vitest";
import type { JobRecord } from "../../src/store/tables/jobs.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { TokenMatrix } from "../../src/training/contract.ts";
import { type Command, RUNS_PROJECT } from "../../src/training/runs/operation.ts";
import { JobFailed, type Operation } from "./operations.ts";
import { answersAs, OWNER, overOf, type Scene } from "./scene.ts";

const MATRIX: TokenMatrix = {
  ...{ id: "m", group: -1, ids: [5, 6], width: 1, targets: [6, 7] },
  ...{ weights: null, advantages: null, behaviorLogprobs: null, policyVersions: null },
};
const PASS: Command = {
  ...{ kind: "forward_backward", loss: { name: "cross_entropy" }, wantsLogprobs: false, wantsTokenIds: false },
  matrices: [{ id: "m", shape: [2, 1] }],
};
const STEP: Command = { kind: "optim_step", optimizer: RL_DEFAULTS.optimizer };
const PUBLISH: Command = { kind: "save_weights_for_sampler", target: "saved_generation", alias: "public" };

async function makeRun({ bench }: Scene): Promise<string> {
  const names = { owner: OWNER, entity: "team", requestId: "r", name: "run", baseModel: "tiny" };
  const { run } = await bench.service.runs.resolve({ ...names, loraRank: 2, seed: null, spec: "{}", from: null });
  return run.modelId;
}

async function command({ bench }: Scene, runId: string, command: Command): Promise<JobRecord> {
  const { runs, jobs } = bench.service;
  const { run, nextSequenceId } = await runs.view(runId, OWNER);
  const draft = command.kind === "forward_backward" ? await jobs.draft(OWNER) : null;
  await draft?.input.append(MATRIX);
  const ids = { requestId: `${command.kind}-${nextSequenceId}`, sequenceId: nextSequenceId, requestHash: "" };
  return runs.submit(run, { ...ids, command, draft });
}

const done = async (scene: Scene, runId: string, what: Command) => {
  const { id } = await command(scene, runId, what);
  expect(await overOf(scene, id)).toMatchObject({ status: "COMPLETED", errorMessage: null });
};

const newestJob = async ({ store, tables }: Scene, modelId: string): Promise<JobRecord> => {
  const sql = "SELECT id FROM jobs WHERE model_id = ?1 ORDER BY seq DESC LIMIT 1";
  return (await tables.jobTable.get((await store.get<{ id: string }>(sql, modelId))!.id))!;
};

const run = async (scene: Scene, runId: string) => {
  const { status, errorMessage } = await overOf(scene, (await newestJob(scene, runId)).id);
  if (status !== "COMPLETED") throw new JobFailed(errorMessage ?? "");
};

const shared = { waiting: true, runsJobs: true, during: "operation" as const, make: makeRun, run };

const optimizerStep: Operation = {
  ...shared,
  name: "take an optimizer step of a run",
  begin: (scene, runId) => done(scene, runId, PASS),
  wait: (scene, runId) => command(scene, runId, STEP),
  effect: async (scene, runId) => {
    const { status } = await newestJob(scene, runId);
    const newest = (await scene.tables.modelTable.newestStep(runId))!.step;
    const kept = (await scene.tables.runTable.keptGradients(runId)).length;
    if (status === "COMPLETED" && newest === 1 && kept === 0) return "after";
    return status === "FAILED" && newest === 0 && kept === 1
      ? "before"
      : `half: ${status}, step ${newest}, ${kept} kept`;
  },
  again: async (scene, runId) => {
    const before = (await scene.tables.modelTable.newestStep(runId))!.step;
    if (before === 1) await done(scene, runId, PASS);
    await done(scene, runId, STEP);
    expect((await scene.tables.modelTable.newestStep(runId))!.step).toBe(before + 1);
  },
};

const publication: Operation = {
  ...shared,
  name: "publish a run",
  begin: async (scene, runId) => {
    await done(scene, runId, PASS);
    await done(scene, runId, STEP);
  },
  wait: (scene, runId) => command(scene, runId, PUBLISH),
  effect: async (scene, runId) => {
    const { status } = await newestJob(scene, runId);
    const made = await scene.tables.modelTable.named(OWNER, "team", RUNS_PROJECT, "public");
    const steps = made === null ? null : (await scene.tables.modelTable.steps(made.id)).map(({ step }) => step).join();
    if (status === "COMPLETED" && steps === "1") return "after";
    return status === "FAILED" && steps === null ? "before" : `half: ${status}, steps ${steps}`;
  },
  again: async (scene, runId) => {
    await done(scene, runId, PUBLISH);
    expect(await answersAs(scene.bench, "public")).toBeGreaterThan(0);
  },
};

const cancellation: Operation = {
  name: "cancel an operation that runs",
  ...{ waiting: true, runsJobs: true, held: true, inSteps: true, make: makeRun },
  begin: (scene, runId) => done(scene, runId, PASS),
  wait: (scene, runId) => command(scene, runId, STEP),
  run: async (scene, runId) => {
    const { id } = await newestJob(scene, runId);
    await scene.bench.service.runs.cancel(runId, OWNER, id);
    await overOf(scene, id);
  },
  effect: async (scene, runId) => {
    const { status } = await newestJob(scene, runId);
    return status === "RUNNING" ? "before" : status === "CANCELLED" ? "after" : `half: it is ${status}`;
  },
  again: async (scene, runId) => {
    const { id } = await newestJob(scene, runId);
    await scene.bench.service.runs.cancel(runId, OWNER, id);
    expect(await overOf(scene, id)).toMatchObject({ status: "CANCELLED" });
  },
};

export const RUN_OPERATIONS: readonly Operation[] = [optimizerStep, publication, cancellation];
