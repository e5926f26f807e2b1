// A training service on a temporary data directory with a fake trainer process, and data to feed it.

import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { AdapterSlots } from "../../src/engine/adapter-slots.ts";
import { createLog, type Log } from "../../src/observe/log.ts";
import type { Store } from "../../src/store/store.ts";
import type { JobEvent } from "../../src/store/tables/events.ts";
import type { JobRecord } from "../../src/store/tables/jobs.ts";
import { type Tables, tablesOn } from "../../src/store/tables/tables.ts";
import { BaseModels, limitsOf } from "../../src/training/base-models.ts";
import { RL_DEFAULTS, type RlConfig } from "../../src/training/config.ts";
import type { JobObserver, LeaseTimes, ServerPart } from "../../src/training/context.ts";
import type { Trainer } from "../../src/training/contract.ts";
import type { TrajectoryGroup } from "../../src/training/data/trajectory.ts";
import { SharedFolder } from "../../src/training/files/shared-folder.ts";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import { ForkedProcess } from "../../src/training/process/trainer-process.ts";
import type { RecordBound } from "../../src/training/records/records.ts";
import { TrainingService } from "../../src/training/service.ts";
import { type AdapterEngine, adapterEngine } from "./adapter-engine.ts";
import { PROJECT_STORE, storesOf } from "./stores.ts";
import { toyEncoder, toyHistory } from "./toy-encoder.ts";

export const LLAMA = new URL("../fixtures/llama", import.meta.url).pathname;

const openStore = storesOf(PROJECT_STORE);

/** --database of a server on this folder; null = its rows are in the folder. */
export const databaseOf = openStore.database;

/** Works on the rows of a bench, as another server on its database does. */
export async function beside<R>(
  { folder }: { folder: string },
  work: (tables: Tables, store: Store) => Promise<R>,
): Promise<R> {
  const store = await openStore(folder);
  try {
    return await work(tablesOn(store), store);
  } finally {
    await store.close();
  }
}

export interface TrainingBench {
  service: TrainingService;
  engine: AdapterEngine;
  slots: AdapterSlots;
  store: Store;
  folder: string;
  close(): Promise<void>;
}

export interface BenchOptions {
  folder?: string;
  /** Checkpoint of the base model. */
  baseFolder?: string;
  log?: Log;
  trainer?: Trainer;
  maxLoras?: number;
  maxLoraRank?: number;
  maxParallelJobs?: number;
  maxStepsPerModel?: number;
  stepGraceMs?: number;
  visibleMs?: number;
  /** By default in `folder`. */
  workspace?: StepFolders;
  maxOpenJobs?: number;
  maxBytesPerOwner?: number;
  offersRuns?: boolean;
  keepRecords?: RecordBound;
  /** Shared with other services; whoever made it closes it. */
  store?: Store;
  server?: ServerPart;
  times?: LeaseTimes;
  /** Puts something between the service and its database. */
  wrapStore?: (store: Store) => Store;
  /** Puts something between the service and its engine. */
  wrapEngine?: (engine: AdapterEngine) => AdapterEngine;
  observer?: JobObserver;
}

/** `env`: further wishes of trainer-process.mjs. */
export function fakeTrainer(stepMs = 2, env: Record<string, string> = {}): ProcessTrainer {
  return new ProcessTrainer({
    start: () =>
      new ForkedProcess(new URL("./trainer-process.mjs", import.meta.url), {
        ...process.env,
        FAKE_TRAINER_STEP_MS: String(stepMs),
        ...env,
      }),
    idleMs: 60_000,
    cancelGraceMs: 300,
  });
}

/** A trainer that trains in this way, and does all else as the given one. */
export function trainingBy(trainer: Trainer, train: Trainer["train"]): Trainer {
  return {
    pass: (task, signal) => trainer.pass(task, signal),
    update: (task, signal) => trainer.update(task, signal),
    limits: (task) => trainer.limits(task),
    close: () => trainer.close(),
    train,
  };
}

/** A fake trainer and the power over it: jobs stay in the middle of their training, however slow the machine is. */
export function heldTrainer() {
  const file = join(mkdtempSync(join(tmpdir(), "held-")), "hold");
  const hold = () => writeFileSync(file, "");
  hold();
  return { trainer: fakeTrainer(2, { FAKE_TRAINER_HELD_BY: file }), hold, letGo: () => rmSync(file) };
}

export async function trainingBench(options: BenchOptions = {}): Promise<TrainingBench> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "training-"));
  const training = join(folder, "training");
  const bare = adapterEngine(LLAMA, options.maxLoras, options.maxLoraRank);
  const engine = options.wrapEngine?.(bare) ?? bare;
  const slots = new AdapterSlots(engine);
  const opened = options.store ?? (await openStore(folder));
  const store = options.wrapStore?.(opened) ?? opened;
  const trainer = options.trainer ?? fakeTrainer();
  const limits = { positionsPerBlock: 16, maxSequenceLength: 64, activationBytes: 2 ** 30, rank: 2 };
  const base = {
    ...{ name: "tiny", aliases: ["tiny-llama"], folder: options.baseFolder ?? LLAMA, weights: "float32" as const },
    limits: limitsOf(trainer, { baseModel: LLAMA, weights: "float32", ...limits }),
    ...{ maxSequenceLength: 64, encoder: toyEncoder },
    ...{ engine, slots },
  };
  const service = new TrainingService({
    store,
    workspace: options.workspace ?? new StepFolders(training, new SharedFolder(training, options.visibleMs ?? 0)),
    bases: new BaseModels([base]),
    trainer,
    log: options.log ?? createLog({ level: "error", format: "text" }),
    lora: { rank: 2, alpha: 4 },
    maxParallelJobs: options.maxParallelJobs ?? 2,
    stepGraceMs: options.stepGraceMs ?? 0,
    maxStepsPerModel: options.maxStepsPerModel ?? 1000,
    maxOpenJobs: options.maxOpenJobs ?? 10_000,
    maxBytesPerOwner: options.maxBytesPerOwner ?? Number.MAX_SAFE_INTEGER,
    keepRecords: options.keepRecords ?? { bytes: 2 ** 30, ms: 86_400_000 },
    threads: 1,
    activationBytes: 2 ** 30,
    isServedName: () => false,
    offersRuns: options.offersRuns ?? true,
    ...(options.observer === undefined ? {} : { observer: options.observer }),
    ...(options.server === undefined ? {} : { server: options.server }),
    ...(options.times === undefined ? {} : { times: options.times }),
  });
  try {
    await service.start();
  } catch (error) {
    await service.close();
    if (options.store === undefined) await store.close();
    throw error;
  }
  return {
    service,
    engine,
    slots,
    store,
    folder,
    async close() {
      await service.close();
      if (options.store === undefined) await store.close();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a function that starts services, which are closed after each test. */
export function benchesOfTest(): (options?: BenchOptions) => Promise<TrainingBench> {
  const open: TrainingBench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });
  return async (options = {}) => {
    const bench = await trainingBench(options);
    open.push(bench);
    return bench;
  };
}

/** The folder of a step, which need not exist. */
export function stepFolder(bench: TrainingBench, model: string, step: number): string {
  const folder = join(bench.folder, "training", "models", model);
  return join(folder, folderOfStep(folder, step) ?? `step-${step}`);
}

/** The name of the folder of a step inside that of its model. */
export function folderOfStep(modelFolder: string, step: number): string | undefined {
  if (!existsSync(modelFolder)) return undefined;
  return readdirSync(modelFolder).find((name) => name === `step-${step}` || name.startsWith(`step-${step}-`));
}

/** Names of the folders of open jobs. */
export function jobFolders(bench: TrainingBench): string[] {
  return readdirSync(join(bench.folder, "training", "jobs"));
}

/** A group of one-turn trajectories with these replies and rewards. */
export function scored(...replies: (readonly [reply: string, reward: number])[]): TrajectoryGroup {
  return {
    exceptions: 0,
    metrics: {},
    trajectories: replies.map(([reply, reward]) => ({
      reward,
      initialPolicyVersion: null,
      metrics: {},
      histories: [toyHistory(reply)],
    })),
  };
}

export function newModel(bench: TrainingBench, name = "agent", owner = "me") {
  return bench.service.models.create({
    ...{ owner, entity: "team", project: "demo", name, baseModel: "tiny" },
    returnExisting: false,
    from: null,
  });
}

export async function submit(
  bench: TrainingBench,
  modelId: string,
  groups: readonly TrajectoryGroup[] = [scored(["a1 <e>", 1], ["a2 <e>", 0])],
  options: { owner?: string; key?: string; config?: Partial<RlConfig> } = {},
): Promise<JobRecord> {
  const draft = await bench.service.jobs.draft(options.owner ?? "me");
  for (const group of groups) await draft.input.append(group);
  return bench.service.jobs.submit(draft, {
    owner: options.owner ?? "me",
    modelId,
    spec: { kind: "rl", config: { ...RL_DEFAULTS, ...options.config } },
    idempotencyKey: options.key ?? null,
    requestHash: JSON.stringify(groups),
  });
}

/** All events of a job, once it is over. */
export async function ended(bench: TrainingBench, job: JobRecord): Promise<JobEvent[]> {
  const all = () => bench.service.jobs.events(job.id, null, 100_000);
  const isLast = ({ type }: JobEvent) => type === "training_ended" || type === "training_failed";
  let stop = () => {};
  const told = new Promise<void>((resolve) => {
    stop = bench.service.jobs.watch(job.id, async (event) => {
      // on another server, the table has the news
      if (event ? isLast(event) : (await all()).some(isLast)) resolve();
    });
  });
  if (!(await all()).some(isLast)) await told;
  stop();
  return all();
}

/** A group whose id makes the fake trainer misbehave. The id must be in the vocabulary. */
export function faulty(id: number): TrajectoryGroup {
  const group = scored(["a1 <e>", 1], ["a2 <e>", 0]);
  for (const { histories } of group.trajectories) {
    const item = histories[0]!.items[1]!;
    if ("choice" in item) item.choice.promptTokenIds = [id];
  }
  return group;
}
