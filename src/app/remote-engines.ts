// Engines on other machines (`--engine-url`): vLLM or Flywheel servers behind one fleet engine. The start waits for the
// first that is ready, however long it loads its weights, and says which ones it waits for.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { ServedCheckpoint } from "../api/service.ts";
import type { Config } from "../config/options.ts";
import type { Engine } from "../engine/contract.ts";
import { FleetEngine, type FleetOptions } from "../engine/fleet/fleet-engine.ts";
import type { ProbeTimes } from "../engine/remote/probe.ts";
import { RemoteReplica } from "../engine/remote/remote-replica.ts";
import { OperatorError } from "../errors/faults.ts";
import { CheckpointError } from "../model/checkpoint/checkpoint-file.ts";
import type { ServedConfig } from "../model/checkpoint/config-files.ts";
import { type ModelConfig, readModelConfig } from "../model/checkpoint/model-config.ts";
import { INDEX_FILE, SINGLE_FILE } from "../model/checkpoint/weight-files.ts";
import { hashAdapter, readAdapter } from "../model/lora/adapter-reader.ts";
import type { Log } from "../observe/log.ts";
import { DEFAULT_WEIGHT_TYPE } from "./embedded-engine.ts";

export interface RemoteEnginesOptions {
  /** `URL[,max=N]` each. */
  urls: readonly string[];
  apiKey: string | null;
  /** Marks the adapters of this server on engines that others use too. */
  front: string;
  /** The model as its files describe it; the context as the operator wants it. */
  vocabSize: number;
  maxModelLen: number;
  /** For servers that do not tell. */
  maxLoras: number;
  maxLoraRank: number;
  fleet: FleetOptions;
  times: ProbeTimes;
  onNotice: (message: string, details: Record<string, unknown>) => void;
}

export interface RemoteEngines {
  engine: FleetEngine;
  /** The first engine that was ready is a Flywheel server. */
  flywheel: boolean;
}

/** How often the start looks at its engines, and how often it says that it waits. */
const LOOK_MS = 100;
const SAY_MS = 10_000;

export async function createRemoteEngines(options: RemoteEnginesOptions): Promise<RemoteEngines> {
  const { urls, fleet, ...common } = options;
  const replicas = urls.map((url) => new RemoteReplica({ ...common, ...readEngineUrl(url) }));
  try {
    await firstReady(replicas, options.onNotice);
  } catch (error) {
    await Promise.all(replicas.map((replica) => replica.close()));
    throw error;
  }
  const flywheel = replicas.find(({ info }) => info !== null)!.isFlywheel;
  return { engine: await FleetEngine.start(replicas, fleet), flywheel };
}

/** Rejects when a server answers that cannot be used: it is the wrong one, or lacks a setting. */
async function firstReady(
  replicas: readonly RemoteReplica[],
  onNotice: RemoteEnginesOptions["onNotice"],
): Promise<void> {
  let saidAt = performance.now() - SAY_MS + 2 * LOOK_MS;
  while (!replicas.some(({ state }) => state === "ready")) {
    const bad = replicas.find(({ unusable }) => unusable !== null);
    if (bad !== undefined) throw new OperatorError(`--engine-url ${bad.name} cannot be used: ${bad.unusable}`);
    if (performance.now() - saidAt >= SAY_MS) {
      saidAt = performance.now();
      const waiting = replicas.map(({ name, problem }) => (problem === null ? name : `${name} (${problem})`));
      onNotice("waiting for an engine", { engines: waiting.join(", ") });
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const DEFAULT_IN_FLIGHT = 256;

/** `http://10.0.0.5:8000,max=64`, as config/option.ts has checked it. */
export function readEngineUrl(text: string): { url: string; maxInFlight: number } {
  const [url, max] = text.split(",max=");
  // A client's base URL ends with /v1; a replica's does not.
  const base = url!.replace(/\/+$/, "").replace(/\/v1$/, "");
  return { url: base, maxInFlight: max === undefined ? DEFAULT_IN_FLIGHT : Number(max) };
}

/** What both kinds of engines are started with. */
export interface EngineParts {
  /** Of the model: configuration and tokenizer at least. */
  folder: string;
  fleet: Pick<FleetOptions, "queueTimeoutMs" | "onFault" | "onState">;
  log: Log;
}

export interface StartedEngine {
  engine: Engine;
  /** null: its weights are not here, and it cannot be trained. */
  checkpoint: ServedCheckpoint | null;
}

export async function connectEngines(
  config: Config,
  { folder, model, fleet, log }: EngineParts & { model: ServedConfig },
): Promise<StartedEngine> {
  const local = localModel(folder);
  const { engine, flywheel } = await createRemoteEngines({
    urls: config.engineUrl,
    apiKey: config.engineApiKey,
    front: frontOf(config),
    vocabSize: model.vocabSize,
    maxModelLen: config.maxModelLen ?? Number.POSITIVE_INFINITY,
    maxLoras: config.enableLora ? config.maxLoras : 0,
    maxLoraRank: config.maxLoraRank,
    fleet: {
      ...fleet,
      prefixCaching: config.enablePrefixCaching,
      readAdapter: (adapter) => (local === null ? hashAdapter(adapter) : readAdapter(adapter, local.model)),
    },
    times: probeTimes(config.engineTimeout),
    onNotice: (message, details) => log.info(message, details),
  });
  if (!local?.hasWeights) {
    const why = local === null ? "a model that this server can train" : "the weights of --model on this machine";
    if (config.training) log.warn(`training is off: it needs ${why}`, { folder });
    return { engine, checkpoint: null };
  }
  // The trainer computes with the weights that are served. vLLM does not round them as Flywheel does by default.
  const weightType = config.dtype === "auto" ? (flywheel ? DEFAULT_WEIGHT_TYPE : "float32") : config.dtype;
  return { engine, checkpoint: { folder, weightType } };
}

/** The same after a restart, and different for servers that run at the same time. */
function frontOf({ data, port, uds }: Config): string {
  const place = JSON.stringify([hostname(), resolve(data), uds ?? port]);
  return createHash("sha256").update(place).digest("hex").slice(0, 8);
}

/** A server is asked every two seconds, and at least five times before it counts as gone. */
function probeTimes(timeout: number): ProbeTimes {
  return { silenceMs: timeout * 1000, intervalMs: Math.min(2000, (timeout * 1000) / 5) };
}

/** null: a model that the embedded engine, and so the trainer, does not know, or whose weights are quantized. */
function localModel(folder: string): { model: ModelConfig; hasWeights: boolean } | null {
  try {
    const model = readModelConfig(folder);
    return { model, hasWeights: existsSync(join(folder, SINGLE_FILE)) || existsSync(join(folder, INDEX_FILE)) };
  } catch (error) {
    if (error instanceof CheckpointError) return null;
    throw error;
  }
}
