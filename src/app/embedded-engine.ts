// The embedded engine: a checkpoint folder served by ONNX Runtime in a worker thread. Turns the operator's settings
// (bytes, context length) into blocks and positions, and refuses settings that cannot work before it starts a thread.

import { totalmem } from "node:os";
import type { Engine } from "../engine/contract.ts";
import { FleetEngine, type FleetOptions } from "../engine/fleet/fleet-engine.ts";
import { LocalReplica, replicaAlias } from "../engine/fleet/replica.ts";
import { DEFAULT_SCHEDULING, type SchedulingOptions } from "../engine/scheduling.ts";
import { WorkerEngine } from "../engine/thread/worker-host.ts";
import { OperatorError } from "../errors/faults.ts";
import type { TokenVocabulary } from "../grammar/match/token-vocabulary.ts";
import { blockBytes, type CacheType, cacheTypeFor } from "../model/attention/cache-type.ts";
import { longestRun } from "../model/attention/longest-run.ts";
import { checkpointIdentity, openCheckpoint } from "../model/checkpoint/checkpoint.ts";
import { eachTensor } from "../model/checkpoint/expected-tensors.ts";
import { type ModelConfig, readModelConfig } from "../model/checkpoint/model-config.ts";
import { shortContext } from "../model/checkpoint/rope.ts";
import { sharedEmbedding } from "../model/embedding.ts";
import type { WeightType } from "../model/linear/linear.ts";
import { kernelsHere } from "../model/runtime-version.ts";
import { compiledEntry } from "../system/package.ts";
import type { OnnxHostOptions } from "./onnx-host.ts";
import { usableCores } from "./usable-cores.ts";

// Several embedded engines that share this machine's cores (`--data-parallel-size`). A step of a small model is too
// little work for many threads, so several engines of few threads generate more tokens than one of many. They share the
// embedding. The runtime packs the other weights into memory of its own, once per engine.

export interface EmbeddedFleetOptions extends EmbeddedOptions {
  /** Number of engines; "auto": by cores and the model's size. */
  engines: number | "auto";
  fleet: Omit<FleetOptions, "prefixCaching">;
}

export async function createEmbeddedEngines(options: EmbeddedFleetOptions): Promise<Engine> {
  const { engines: wanted, fleet, ...each } = options;
  const threads = options.threads ?? usableCores();
  const engines =
    wanted === "auto" ? automaticEngines(threads, parameterCount(options.folder), usableMemory()) : wanted;
  if (engines > threads) {
    throw new OperatorError(
      `--data-parallel-size ${engines} is more than the ${threads} threads that they would share`,
    );
  }
  if (engines === 1) return createEmbeddedEngine(each);
  const embedding = embeddingOf(options.folder);
  const bytes = Math.floor(kvCacheBytes(options) / engines);
  const started = await Promise.allSettled(
    shares(threads, engines).map((share) =>
      createEmbeddedEngine({ ...each, threads: share, kvCacheBytes: bytes, embedding }),
    ),
  );
  const running = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = started.find((result) => result.status === "rejected");
  if (failed !== undefined) {
    await Promise.all(running.map((engine) => engine.close()));
    throw failed.reason;
  }
  const { prefixCaching = true, maxNumSeqs = DEFAULT_SCHEDULING.maxNumSeqs } = options.scheduling ?? {};
  const replicas = running.map((engine, i) => new LocalReplica(replicaAlias(i), engine, maxNumSeqs));
  return FleetEngine.start(replicas, { ...fleet, prefixCaching });
}

/** As equal as possible. */
export function shares(threads: number, engines: number): number[] {
  return Array.from({ length: engines }, (_, i) => Math.floor(threads / engines) + (i < threads % engines ? 1 : 0));
}

/**
 * A model of up to 150 million weights gets two threads per engine, up to a billion four, a larger one eight. All
 * engines together take at most a quarter of the memory for their copies of the weights, two bytes for each.
 */
export function automaticEngines(threads: number, weights: number, memory: number): number {
  const perEngine = weights <= 150e6 ? 2 : weights <= 1e9 ? 4 : 8;
  return Math.max(1, Math.min(Math.floor(threads / perEngine), Math.floor(memory / 4 / (2 * weights))));
}

export function parameterCount(folder: string): number {
  const { tensors, close } = openCheckpoint(folder);
  close();
  const sizes = [...eachTensor(tensors)].map(({ shape }) => shape.reduce((size, length) => size * length, 1));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function embeddingOf(folder: string): SharedArrayBuffer {
  const checkpoint = openCheckpoint(folder);
  try {
    return sharedEmbedding(checkpoint);
  } finally {
    checkpoint.close();
  }
}

interface EmbeddedOptions {
  /** A checkpoint folder in Hugging Face layout, or a GGUF file. */
  folder: string;
  /** Default: DEFAULT_WEIGHT_TYPE. */
  weightType?: WeightType;
  /** Threads of one model step; default: all cores this process may use. */
  threads?: number;
  /** Tokens that the prefix cache reuses together (`--block-size`); default: DEFAULT_LINK_SIZE. */
  linkSize?: number;
  /** Memory for keys and values; default: a quarter of the machine's (or container's) memory, at most 4 GiB. */
  kvCacheBytes?: number;
  /** Context length; default: the model's own, or less if the cache cannot hold it. */
  maxModelLen?: number;
  maxLoras?: number;
  maxLoraRank?: number;
  /** Adapters will be loaded right after the start. */
  adaptersFromStart?: boolean;
  /** For structured output: see grammar/match/token-vocabulary.ts. */
  vocabulary?: TokenVocabulary;
  /** The embedding, if other engines of this process use it too. */
  embedding?: SharedArrayBuffer;
  scheduling?: Partial<SchedulingOptions>;
  onFault?: (error: Error) => void;
}

/** Chosen by measurement: bench/notes/accuracy.md. */
export const DEFAULT_WEIGHT_TYPE: WeightType = "int8";
export const DEFAULT_LINK_SIZE = 16;
/** With fewer, attention's products are shorter and slower: bench/notes/step-time.md. */
const LEAST_POSITIONS = 64;
const MAX_DEFAULT_KV_BYTES = 4 * 2 ** 30;

/** Resolves when the model is loaded; throws CheckpointError for a bad folder, OperatorError for settings that cannot work. */
export async function createEmbeddedEngine(options: EmbeddedOptions): Promise<WorkerEngine> {
  const config = readModelConfig(options.folder);
  const linkSize = checkedLinkSize(options.linkSize ?? DEFAULT_LINK_SIZE);
  const positionsPerBlock = blockOfLinks(linkSize);
  const weightType = options.weightType ?? DEFAULT_WEIGHT_TYPE;
  const { numBlocks, maxModelLen } = cacheSize(options, config, positionsPerBlock, await cacheTypeHere(weightType));
  const host: OnnxHostOptions = {
    folder: options.folder,
    identity: checkpointIdentity(options.folder),
    weightType,
    threads: options.threads ?? usableCores(),
    positionsPerBlock,
    numBlocks,
    maxPositions: maxModelLen,
    longFactors: maxModelLen > (shortContext(config.layers) ?? maxModelLen),
    maxLoras: options.maxLoras ?? 4,
    maxLoraRank: options.maxLoraRank ?? 64,
    adaptersFromStart: options.adaptersFromStart ?? false,
    vocabulary: options.vocabulary ?? null,
    ...(options.embedding === undefined ? {} : { embedding: options.embedding }),
  };
  return WorkerEngine.start({
    model: () => ({ module: compiledEntry(import.meta.url, "./onnx-host.ts").href, options: host }),
    scheduling: { ...scheduling(options.scheduling ?? {}, host.threads), linkSize },
    onFault: options.onFault,
  });
}

/** Chunks as long as the runner computes at once are fastest. A limit given by the operator holds for every step. */
function scheduling(given: Partial<SchedulingOptions>, threads: number): Partial<SchedulingOptions> {
  if (given.maxNumBatchedTokens !== undefined) return given;
  return { maxNumPromptTokens: longestRun(threads), ...given };
}

function checkedLinkSize(linkSize: number): number {
  if (Number.isInteger(linkSize) && linkSize >= 16 && linkSize % 16 === 0) return linkSize;
  throw new OperatorError(`--block-size must be a multiple of 16, found ${linkSize}`);
}

/** Positions of one block of memory: whole links of the prefix cache, at least LEAST_POSITIONS together. */
export function blockOfLinks(linkSize: number): number {
  return linkSize * Math.ceil(LEAST_POSITIONS / linkSize);
}

/** The type in which engines on this machine store keys and values. */
export async function cacheTypeHere(weightType: WeightType): Promise<CacheType> {
  return cacheTypeFor(weightType !== "float32", (await kernelsHere()).kernels === "native");
}

function cacheSize(options: EmbeddedOptions, config: ModelConfig, positionsPerBlock: number, type: CacheType) {
  const memory = usableMemory();
  const bytes = kvCacheBytes(options);
  if (bytes > memory) {
    throw new OperatorError(`--kv-cache-memory-bytes ${bytes} is more than this machine's memory (${memory} bytes)`);
  }
  return cacheFor(bytes, options.maxModelLen ?? null, config, positionsPerBlock, type);
}

/** The blocks that so many bytes hold, and the longest sequence. Throws for a context that cannot be served. */
export function cacheFor(
  bytes: number,
  wanted: number | null,
  config: ModelConfig,
  positionsPerBlock: number,
  type: CacheType,
) {
  const perBlock = blockBytes(config, positionsPerBlock, type);
  const numBlocks = Math.floor(bytes / perBlock);
  if (numBlocks < 1) {
    throw new OperatorError(
      `--kv-cache-memory-bytes ${bytes} is less than one block of this model (${perBlock} bytes)`,
    );
  }
  const fits = numBlocks * positionsPerBlock;
  if (wanted === null) return { numBlocks, maxModelLen: Math.min(usualContext(config), fits) };
  if (wanted > config.maxPositions) {
    throw new OperatorError(`--max-model-len ${wanted} is more than the model's ${config.maxPositions} positions`);
  }
  if (wanted > fits) {
    const needed = Math.ceil(wanted / positionsPerBlock) * perBlock;
    throw new OperatorError(
      `--max-model-len ${wanted} does not fit the KV cache (${fits} tokens): lower it or give --kv-cache-memory-bytes ${needed}`,
    );
  }
  return { numBlocks, maxModelLen: wanted };
}

/** The context without --max-model-len: the model's, or of LongRoPE's what its short factors serve. Longer ones change every answer. */
export function usualContext({ layers, maxPositions }: ModelConfig): number {
  return Math.min(shortContext(layers) ?? maxPositions, maxPositions);
}

export function kvCacheBytes(options: Pick<EmbeddedOptions, "kvCacheBytes">): number {
  return options.kvCacheBytes ?? Math.min(MAX_DEFAULT_KV_BYTES, Math.floor(usableMemory() / 4));
}

/** The machine's memory, or the container's limit: the pool fills up with traffic, and exceeding the limit kills us. */
export function usableMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
