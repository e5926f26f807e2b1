// The operations whose every call fails once: what each does, what it finds, and how to see whether it took effect.

import { expect } from "vitest";
import { openDataDir } from "../../src/store/data-dir.ts";
import { TokenStore } from "../../src/store/tokens.ts";
import { newModel } from "../support/training-service.ts";
import { faultyStore } from "./faulty-store.ts";
import { answersAs, OWNER, overOf, type Scene, type SceneOptions, submitJob } from "./scene.ts";

/** Whether an operation took effect; otherwise what is half. */
export type Effect = "before" | "after" | `half: ${string}`;

export interface Operation extends SceneOptions {
  name: string;
  /** How many trained steps the model has that it is about. 0 by default. */
  steps?: number;
  /** Whether a job of that model waits. */
  waiting?: boolean;
  /** Makes what it is about, if that is no registered model, and returns its id. */
  make?(scene: Scene): Promise<string>;
  /** Does what comes before, while jobs run. */
  begin?(scene: Scene, agent: string): Promise<void>;
  /** Submits what waits, if that is no job. */
  wait?(scene: Scene, agent: string): Promise<unknown>;
  /** Rejects with what a client would be told. `agent`: the id of the model. */
  run(scene: Scene, agent: string): Promise<void>;
  effect(scene: Scene, agent: string): Promise<Effect>;
  /** Does it again, when it may have taken effect. Must work. */
  again(scene: Scene, agent: string): Promise<void>;
  /** It is more than one change, each of which may be done again: its failure does not mean that nothing was changed. */
  inSteps?: boolean;
}

/** A job ended with this message. */
export class JobFailed extends Error {
  override name = "JobFailed";
}

const KEY = "once";
const place = { owner: OWNER, entity: "team", project: "demo" };

const stepsOf = async ({ tables }: Scene, modelId: string) =>
  (await tables.modelTable.steps(modelId)).map(({ step }) => step);

const jobOf = async ({ tables }: Scene, modelId: string) => {
  const [job] = await tables.jobTable.list(OWNER, modelId, null, null, 1);
  return job!;
};

/** The model of this name is there with one step, or not at all. */
const isMade = async ({ tables }: Scene, name: string, step: number): Promise<Effect> => {
  const model = await tables.modelTable.named(OWNER, "team", "demo", name);
  if (model === null) return "before";
  const steps = (await tables.modelTable.steps(model.id)).map((one) => one.step);
  return steps.join() === String(step) ? "after" : `half: it has the steps ${steps}`;
};

const register: Operation = {
  name: "register",
  run: async ({ bench }) => void (await newModel(bench, "new")),
  effect: (scene) => isMade(scene, "new", 0),
  again: async (scene) => {
    const { models } = scene.bench.service;
    await models.create({ ...place, name: "new", baseModel: "tiny", returnExisting: true, from: null });
    expect(await answersAs(scene.bench, "new")).toBe(0);
  },
};

const fork: Operation = {
  name: "fork",
  steps: 1,
  run: async ({ bench }, agent) => {
    const from = { modelId: agent, step: 1, owner: OWNER };
    await bench.service.models.create({ ...place, name: "new", baseModel: null, returnExisting: false, from });
  },
  effect: (scene) => isMade(scene, "new", 1),
  again: async (scene, agent) => {
    const from = { modelId: agent, step: 1, owner: OWNER };
    await scene.bench.service.models.create({ ...place, name: "new", baseModel: null, returnExisting: true, from });
    expect(await answersAs(scene.bench, "new")).toBe(1);
  },
};

const rollback: Operation = {
  name: "rollback",
  steps: 2,
  run: async ({ bench }, agent) => void (await bench.service.models.rollback(agent, OWNER, 1)),
  effect: async (scene, agent) => ((await stepsOf(scene, agent)).at(-1) === 3 ? "after" : "before"),
  again: async (scene, agent) => {
    const { step } = await scene.bench.service.models.rollback(agent, OWNER, 1);
    expect(await answersAs(scene.bench, "agent")).toBe(step);
  },
};

const submit: Operation = {
  name: "submit",
  run: async (scene, agent) => void (await submitJob(scene, agent, KEY)),
  effect: async ({ tables }, agent) => {
    const jobs = await tables.jobTable.list(OWNER, agent, null, null, 100);
    return jobs.length === 0 ? "before" : jobs.length === 1 ? "after" : "half: it was accepted twice";
  },
  again: async (scene, agent) => {
    const job = await submitJob(scene, agent, KEY);
    expect(job.id).toBe((await jobOf(scene, agent)).id);
  },
};

/** A job waits. What is under test is a part of its run. */
const training = (name: string, during: "training" | "publishing"): Operation => ({
  name,
  ...{ waiting: true, runsJobs: true, held: true, during },
  run: async (scene, agent) => {
    scene.trainer.letGo();
    const { status, errorMessage } = await overOf(scene, (await jobOf(scene, agent)).id);
    if (status !== "COMPLETED") throw new JobFailed(errorMessage ?? "");
  },
  effect: async (scene, agent) => {
    const { status, toStep } = await jobOf(scene, agent);
    const newest = (await stepsOf(scene, agent)).at(-1);
    if (status === "COMPLETED" && toStep === 1 && newest === 1) return "after";
    return status === "FAILED" && toStep === null && newest === 0 ? "before" : `half: ${status} at step ${newest}`;
  },
  again: async (scene, agent) => {
    const { id } = await submitJob(scene, agent);
    expect(await overOf(scene, id)).toMatchObject({ status: "COMPLETED", errorMessage: null });
    expect(await answersAs(scene.bench, "agent")).toBe((await stepsOf(scene, agent)).at(-1));
  },
});

const cancelWaiting: Operation = {
  name: "cancel a waiting job",
  ...{ waiting: true, inSteps: true },
  run: async (scene, agent) => {
    const { id } = await scene.faults.apart(() => jobOf(scene, agent));
    await scene.bench.service.jobs.cancel(id, OWNER);
  },
  effect: async (scene, agent) => {
    const { status } = await jobOf(scene, agent);
    return status === "PENDING" ? "before" : status === "CANCELLED" ? "after" : `half: it is ${status}`;
  },
  again: async (scene, agent) => {
    const { id } = await jobOf(scene, agent);
    expect(await scene.bench.service.jobs.cancel(id, OWNER)).toMatchObject({ status: "CANCELLED" });
  },
};

const cancelRunning: Operation = {
  ...cancelWaiting,
  name: "cancel a running job",
  ...{ runsJobs: true, held: true },
  run: async (scene, agent) => {
    const { id } = await jobOf(scene, agent);
    await scene.bench.service.jobs.cancel(id, OWNER);
    await overOf(scene, id);
  },
  effect: async (scene, agent) => {
    const { status } = await jobOf(scene, agent);
    return status === "RUNNING" ? "before" : status === "CANCELLED" ? "after" : `half: it is ${status}`;
  },
  again: async (scene, agent) => {
    const { id } = await jobOf(scene, agent);
    await scene.bench.service.jobs.cancel(id, OWNER);
    expect(await overOf(scene, id)).toMatchObject({ status: "CANCELLED" });
  },
};

const deleteStep: Operation = {
  name: "delete a step",
  steps: 2,
  run: async (scene, agent) => {
    expect(await scene.bench.service.models.deleteSteps(agent, OWNER, [1])).toMatchObject({ deletedCount: 1 });
  },
  effect: async (scene, agent) => {
    const steps = (await stepsOf(scene, agent)).join();
    return steps === "0,1,2" ? "before" : steps === "0,2" ? "after" : `half: ${steps} are left`;
  },
  again: async (scene, agent) => {
    await scene.bench.service.models.deleteSteps(agent, OWNER, [1]);
    expect(await stepsOf(scene, agent)).toEqual([0, 2]);
    expect(await answersAs(scene.bench, "agent")).toBe(2);
  },
};

const deleteModel: Operation = {
  name: "delete a model",
  ...{ steps: 1, waiting: true },
  run: async ({ bench }, agent) => void (await bench.service.models.delete(agent, OWNER)),
  effect: async (scene, agent) => ((await scene.tables.modelTable.get(agent)) === null ? "after" : "before"),
  again: async ({ bench, tables }, agent) => {
    if (await tables.modelTable.get(agent)) await bench.service.models.delete(agent, OWNER);
    expect(await tables.modelTable.get(agent)).toBeNull();
    await expect(bench.service.models.delete(agent, OWNER)).rejects.toMatchObject({ code: "unknown_model" });
  },
};

const createToken: Operation = {
  name: "create a token",
  run: async ({ folder, faults }) => {
    const store = openDataDir(folder);
    try {
      const tokens = new TokenStore(faultyStore(store, faults));
      const { secret } = await tokens.create({ name: "ci", scopes: ["training"], lifetime: null });
      expect(await new TokenStore(store).check(secret)).toMatchObject({ ok: true });
    } finally {
      await store.close();
    }
  },
  effect: async ({ store }) => {
    const { tokens, workspaces } = (await store.get<{ tokens: number; workspaces: number }>(
      "SELECT (SELECT COUNT(*) FROM tokens) AS tokens, (SELECT COUNT(*) FROM workspaces WHERE name = 'ci') AS workspaces",
    ))!;
    if (tokens !== workspaces) return `half: ${tokens} tokens and ${workspaces} workspaces`;
    return tokens === 0 ? "before" : "after";
  },
  again: async ({ store }) => {
    const tokens = new TokenStore(store);
    const { secret } = await tokens.create({ name: "ci", scopes: ["training"], lifetime: null });
    expect(await tokens.check(secret)).toMatchObject({ ok: true });
  },
};

export const OPERATIONS: readonly Operation[] = [
  ...[register, submit, training("train", "training"), training("publish", "publishing"), fork, rollback],
  ...[cancelWaiting, cancelRunning, deleteStep, deleteModel, createToken],
];
