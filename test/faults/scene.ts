// What an operation runs on: a training service with its real store and files, whose disk, database and engine can fail, and a
// trainer in this process. Every run begins with a copy of the same folder.

import { once } from "node:events";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { createLog } from "../../src/observe/log.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { isFinal, type JobRecord } from "../../src/store/tables/jobs.ts";
import { type Tables, tablesOn } from "../../src/store/tables/tables.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import { leaseTimes } from "../../src/training/context.ts";
import type { PassTask, Trainer, TrainerTask, UpdateTask } from "../../src/training/contract.ts";
import type { AdapterEngine } from "../support/adapter-engine.ts";
import { type BenchOptions, scored, type TrainingBench, trainingBench } from "../support/training-service.ts";
import type { FaultPoints } from "./fault-points.ts";
import { SOUND_DISK } from "./faulty-disk.ts";
import { faultyStore } from "./faulty-store.ts";

export const OWNER = "me";

/** Thousands of runs would wait for a disk. */
export const MEMORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Whoever waits to try again waits so many milliseconds. Nothing else here waits as long. */
const RETRIES: ReadonlySet<unknown> = new Set([1_000, 2_000]);

/** From now on, nobody waits long to try again. */
export function quickRetries(): void {
  const wait = globalThis.setTimeout;
  const quick = (work: () => void, ms?: number, ...rest: unknown[]) =>
    wait(work, RETRIES.has(ms) ? 1 : ms, ...(rest as []));
  vi.spyOn(globalThis, "setTimeout").mockImplementation(quick as typeof setTimeout);
}

export interface Scene {
  folder: string;
  faults: FaultPoints;
  bench: TrainingBench;
  /** The database without faults. */
  store: Store;
  tables: Tables;
  trainer: HeldTrainer;
  close(): Promise<void>;
}

export interface SceneOptions {
  /** Whether it runs jobs. */
  runsJobs?: boolean;
  /** The trainer stays in the middle of a task until it is let go or the task is cancelled. */
  held?: boolean;
  /** The part of the run of a job that is under test. */
  during?: "training" | "publishing" | "operation";
  /** Whether other servers may use the same database. */
  shared?: boolean;
  /** How long the files of removed steps stay, in milliseconds. */
  stepGraceMs?: number;
}

export async function openScene(folder: string, faults: FaultPoints, options: SceneOptions = {}): Promise<Scene> {
  const { runsJobs = false, held = false, during, shared = false, stepGraceMs = 0 } = options;
  const store = openSqlite(join(folder, "flywheel.db"));
  const trainer = new HeldTrainer(faults, held, during);
  // a job is under test from the moment that somebody claims it
  const asked = (sql: string) => {
    if ((during === "training" || during === "operation") && /SET status = 'RUNNING', worker/.test(sql)) faults.begin();
  };
  const settings: BenchOptions = {
    ...{ folder, store: faultyStore(store, faults, asked), trainer, maxLoras: 2 },
    // it says much, and nobody reads it
    log: createLog({ level: "error", format: "text", write: () => {} }),
    server: { id: "here", runsJobs, alone: !shared },
    // what a server held that stopped without a word is taken over soon
    ...(shared ? { times: leaseTimes(1_500) } : {}),
    stepGraceMs,
    wrapEngine: (engine) => faultyEngine(engine, faults),
    // somebody looks at the metrics
    observer: { trainingJobs: () => {}, gradientStep: () => {}, trainingJobEnded: () => {} },
  };
  try {
    const bench = await trainingBench(settings);
    const close = async () => {
      await bench.close();
      await store.close();
    };
    return { folder, faults, bench, store, tables: tablesOn(store), trainer, close };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function faultyEngine(engine: AdapterEngine, faults: FaultPoints): AdapterEngine {
  const call = async <T>(name: string, kind: "change" | "removal", work: () => Promise<T>): Promise<T> => {
    const fault = faults.meet({ device: "engine", name, kind });
    if (fault && !fault.afterwards) throw fault.error;
    const answer = await work();
    if (fault) throw fault.error;
    return answer;
  };
  return {
    ...engine,
    loadAdapter: (folder) => call("loadAdapter", "change", () => engine.loadAdapter(folder)),
    unloadAdapter: (version) => call("unloadAdapter", "removal", () => engine.unloadAdapter(version)),
  };
}

/** Another adapter each time. */
function writeNext(adapter: string, output: string): void {
  SOUND_DISK.mkdirSync(output);
  for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
    SOUND_DISK.copyFileSync(join(adapter, name), join(output, name));
  }
  const weights = join(output, "adapter_model.safetensors");
  const bytes = SOUND_DISK.readFileSync(weights);
  bytes.writeFloatLE(bytes.readFloatLE(bytes.length - 4) + 1, bytes.length - 4);
  SOUND_DISK.writeFileSync(weights, bytes);
  SOUND_DISK.writeFileSync(join(output, "optimizer.safetensors"), bytes.subarray(0, 8));
}

/** Makes a new adapter from the old one and the batch. Its own disk has no faults: another process has it. */
class HeldTrainer implements Trainer {
  /** Resolves when a task is in its middle. */
  readonly inTheMiddle: Promise<void>;
  letGo: () => void = () => {};
  #reached: () => void = () => {};
  readonly #gate: Promise<void>;
  readonly #faults: FaultPoints;
  readonly #during: SceneOptions["during"];

  constructor(faults: FaultPoints, held: boolean, during: SceneOptions["during"]) {
    this.#faults = faults;
    this.#during = during;
    this.inTheMiddle = new Promise((resolve) => {
      this.#reached = resolve;
    });
    this.#gate = new Promise((resolve) => {
      this.letGo = resolve;
    });
    if (!held) this.letGo();
  }

  async limits() {
    return { maxTrainedLength: 1000 };
  }

  async train(task: TrainerTask, onStep: (metrics: Record<string, number>) => void, signal: AbortSignal) {
    const call = { device: "engine", name: "trainer.train", kind: "change" } as const;
    const fault = this.#faults.meet(call);
    if (fault && !fault.afterwards) throw fault.error;
    const lines = SOUND_DISK.readFileSync(task.batch, "utf8").trimEnd().split("\n");
    for (const [i, { learningRate }] of task.steps.entries()) {
      if (i === 0) await this.#held(signal);
      signal.throwIfAborted();
      onStep({ gradient_step: i + 1, loss: lines.length, grad_norm: 1, entropy: 0.5, learning_rate: learningRate });
      // what happened is recorded meanwhile
      await new Promise(setImmediate);
    }
    writeNext(task.adapter, task.output);
    if (this.#during === "publishing") this.#faults.begin();
    if (this.#during === "training") this.#faults.end();
    if (fault) throw fault.error;
    return { tokens: lines.length, seconds: 0.01, peakBytes: 1, gpus: 0 };
  }

  async pass({ gradients }: PassTask) {
    await this.#asked("trainer.pass", () => {
      if (gradients !== null) SOUND_DISK.writeFileSync(gradients, new Uint8Array(16));
    });
    return { loss: 1, activePositions: 1, byPolicyVersion: null, rows: 1 };
  }

  async update({ adapter, output, gradients }: UpdateTask, signal: AbortSignal) {
    await this.#held(signal);
    await this.#asked("trainer.update", () => {
      for (const file of gradients) SOUND_DISK.readFileSync(file);
      writeNext(adapter, output);
    });
    return { gradNorm: 1 };
  }

  async #held(signal: AbortSignal): Promise<void> {
    this.#reached();
    await Promise.race([this.#gate, signal.aborted || once(signal, "abort")]);
    signal.throwIfAborted();
  }

  async #asked(name: string, work: () => void): Promise<void> {
    const fault = this.#faults.meet({ device: "engine", name, kind: "change" });
    if (fault && !fault.afterwards) throw fault.error;
    work();
    if (fault) throw fault.error;
  }

  async close() {
    this.letGo();
  }
}

/** Sends a job as the API does. */
export async function submitJob({ bench }: Scene, modelId: string, key: string | null = null): Promise<JobRecord> {
  const { jobs } = bench.service;
  const group = scored(["a1 <e>", 1], ["a2 <e>", 0]);
  const draft = await jobs.draft(OWNER, { recorded: true });
  try {
    await draft.input.append(group);
    for (const trajectory of group.trajectories) await draft.record!.trajectory("{}", trajectory);
    await draft.record!.group("{}", { exceptions: [], metadata: null, logs: null });
  } catch (error) {
    await jobs.discard(draft);
    throw error;
  }
  const spec = { kind: "rl" as const, config: RL_DEFAULTS };
  return jobs.submit(draft, { owner: OWNER, modelId, spec, idempotencyKey: key, requestHash: "" });
}

/** The step that answers under this name; null = there is no such policy. */
export async function answersAs({ service }: TrainingBench, name: string): Promise<number | null> {
  const lease = await service.policies.acquire(name, OWNER);
  lease?.release();
  return lease?.step ?? null;
}

/** Waits until a job is over and the server has done everything that follows. */
export async function overOf(scene: Scene, jobId: string): Promise<JobRecord> {
  const { bench, tables } = scene;
  let stop = () => {};
  const told = new Promise<void>((resolve) => {
    stop = bench.service.jobs.watch(jobId, async () => {
      const job = await tables.jobTable.get(jobId);
      if (job && isFinal(job.status)) resolve();
    });
  });
  const now = await tables.jobTable.get(jobId);
  if (!isFinal(now!.status)) await told;
  stop();
  await idle(scene);
  return (await tables.jobTable.get(jobId))!;
}

/** Waits until nothing runs on the server. To look is not part of the operation. */
export async function idle({ bench, faults }: Scene): Promise<void> {
  for (;;) {
    const { running } = await faults.apart(() => bench.service.stats());
    if (running === 0) return;
    await new Promise(setImmediate);
  }
}
