// Adds training to a server: builds it from the served model and the configuration, adds its routes, and serves its
// policies under their names.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { chatEncoder } from "../api/training/chat-encoder.ts";
import { policySource } from "../api/training/policy-source.ts";
import { trainingRoutes } from "../api/training/routes.ts";
import { sizeAndAge } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import type { Log } from "../observe/log.ts";
import { SerialWork } from "../pacing/work.ts";
import { ALIVE_MS, type ServerRecord, ServerTable } from "../store/tables/servers.ts";
import { PACKAGE_VERSION } from "../system/package.ts";
import { BaseModels, limitsOf } from "../training/base-models.ts";
import { leaseTimes } from "../training/context.ts";
import type { RecordBound } from "../training/records/records.ts";
import { TrainingService } from "../training/service.ts";
import type { CreateExtension } from "./serve.ts";
import { openStepFolders } from "./storage.ts";
import { createTrainer, roundsOtherwise, torchDtype, trainedWeights } from "./trainer.ts";
import { usableCores } from "./usable-cores.ts";

// Says every few seconds, in the store, that this server is there, and what others may want to know of it.

const BEAT_MS = 5_000;

export class Heartbeat {
  readonly #table: ServerTable;
  readonly #describe: () => ServerRecord;
  readonly #log: Log;
  readonly #beats = new SerialWork();
  #timer: NodeJS.Timeout | null = null;

  constructor(table: ServerTable, describe: () => ServerRecord, log: Log) {
    this.#table = table;
    this.#describe = describe;
    this.#log = log;
  }

  /** The first beat is done when this resolves. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beat(), BEAT_MS);
    this.#timer.unref();
    await this.#beat();
  }

  /** Takes the row away. */
  async close(): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    await this.#beats.idle();
    await this.#table.remove(this.#describe().id).catch((error: unknown) => {
      this.#log.warn("this server is still listed", { error });
    });
  }

  /** One follows the other. A failure is logged; the next beat may go better. */
  #beat(): Promise<void> {
    return this.#beats
      .run(() => this.#table.beat(this.#describe()))
      .catch((error: unknown) => this.#log.warn("the store does not know that this server is there", { error }));
  }
}

/** Longer than a request: other servers and their engines may still read the files of a step that was removed. */
const GRACE_SECONDS = 3600;

const DAY_MS = 86_400_000;

export const createTraining: CreateExtension = async (service, store) => {
  const { config, engine, log, checkpoint, models: registry } = service;
  const [name, ...aliases] = registry.names;
  const id = randomUUID();
  const trainer = createTrainer(config, log);
  const weights = checkpoint && trainedWeights(config, checkpoint);
  if (roundsOtherwise(config)) {
    const sampler = torchDtype(config);
    log.warn(`sampler and trainer round differently: give --trainer-dtype ${sampler}`, { sampler, trainer: weights });
  }
  const base = checkpoint && {
    name: name!,
    aliases,
    folder: checkpoint.folder,
    weights: weights!,
    maxSequenceLength: engine.info.maxModelLen,
    limits: limitsOf(trainer, {
      baseModel: checkpoint.folder,
      weights: weights!,
      positionsPerBlock: engine.info.positionsPerBlock,
      maxSequenceLength: engine.info.maxModelLen,
      activationBytes: config.trainingMemoryBytes,
      rank: config.loraRank,
    }),
    encoder: chatEncoder(service.text, engine.info.vocabSize),
    engine,
    slots: service.adapterSlots,
  };
  const files = await openStepFolders(config, log);
  const training = new TrainingService({
    store,
    workspace: files.workspace,
    // a model without files or adapter slots here cannot be trained; its jobs say so
    bases: new BaseModels(base && (engine.info.maxLoras > 0 || config.role === "worker") ? [base] : []),
    trainer,
    log,
    observer: service.metrics,
    server: { id, runsJobs: config.role !== "api", alone: config.database === null },
    times: leaseTimes(config.jobLease * 1000),
    lora: { rank: config.loraRank, alpha: config.loraAlpha },
    maxParallelJobs: config.maxTrainingJobs,
    stepGraceMs: stepGraceMs(config),
    maxStepsPerModel: config.maxSteps,
    maxOpenJobs: config.maxOpenTrainingJobs,
    maxBytesPerOwner: config.maxStepBytes,
    keepRecords: recordBound(config),
    threads: config.trainingThreads ?? config.threads ?? usableCores(),
    activationBytes: config.trainingMemoryBytes,
    offersRuns: config.trainer === "onnx",
    isServedName: (name) => registry.names.includes(name) || registry.adapter(name) !== undefined,
  });
  for (const served of registry.names) {
    if (!(await training.policies.claims(served))) continue;
    const why = "is the name of a trained policy, which the served model would hide";
    throw new OperatorError(`${served} ${why}: give another --served-model-name`);
  }
  registry.addSource(policySource(training));
  await training.start();
  let address = "";
  const servers = new ServerTable(store);
  const heartbeat = new Heartbeat(
    servers,
    () => ({
      id,
      role: config.role,
      address,
      version: PACKAGE_VERSION,
      facts: {
        models: registry.names,
        replicas: (engine.replicas?.() ?? []).map(({ name, state, inFlight }) => ({ name, state, inFlight })),
      },
    }),
    log,
  );
  return {
    routes: trainingRoutes(training, { maxBytes: config.maxTrainingBodyBytes }),
    listening: async (url) => {
      address = url.replace(/\/\/(0\.0\.0\.0|\[::\])/, `//${hostname()}`);
      await heartbeat.start();
      if (config.role === "api") await sayWhoTrains(servers, log);
    },
    close: async () => {
      await heartbeat.close();
      await training.close();
      files.close();
    },
  };
};

/** Jobs are accepted without a worker, and wait. If the store is unreachable again, nobody knows who is there. */
async function sayWhoTrains(servers: ServerTable, log: Log): Promise<void> {
  const listed = await servers.list().catch(() => null);
  if (listed === null || listed.some(({ role, silentMs }) => role !== "api" && silentMs < ALIVE_MS)) return;
  log.warn("no server runs training jobs: start one with --role worker");
}

function recordBound({ keepTrajectories }: Config): RecordBound {
  const { bytes, days } = sizeAndAge(keepTrajectories);
  return { bytes, ms: days * DAY_MS };
}

function stepGraceMs({ stepGrace, engineUrl, database }: Config): number {
  return 1000 * (stepGrace ?? (engineUrl.length > 0 || database !== null ? GRACE_SECONDS : 0));
}
