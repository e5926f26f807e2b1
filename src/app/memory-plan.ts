// What a server with these options would take of this machine's memory, without reading the weights. bench/notes/memory.md compares
// it with servers that run.

import type { Config } from "../config/options.ts";
import { embeddingValueBytes } from "../model/checkpoint/checkpoint.ts";
import { readModelConfig } from "../model/checkpoint/model-config.ts";
import type { WeightType } from "../model/linear/linear.ts";
import { estimateMemory, type MemoryEstimate } from "../model/memory-estimate.ts";
import {
  automaticEngines,
  blockOfLinks,
  cacheFor,
  cacheTypeHere,
  DEFAULT_WEIGHT_TYPE,
  kvCacheBytes,
  usableMemory,
  usualContext,
} from "./embedded-engine.ts";
import { usableCores } from "./usable-cores.ts";

export interface MemoryPlan extends MemoryEstimate {
  family: string;
  weightType: WeightType;
  /** Each has the linear maps for itself. */
  engines: number;
  /** The model's own. */
  contextTokens: number;
  /** What is served without --max-model-len. Less than contextTokens for LongRoPE. */
  usualTokens: number;
  cacheBytes: number;
  /** How many tokens, of all sequences together, the cache holds. */
  cacheTokens: number;
  /** Longest sequence that can be served. */
  servedTokens: number;
  /** The most that the process holds while it loads the weights. */
  loadingBytes: number;
  /** The most that the process holds afterwards, when the cache is full. */
  servingBytes: number;
  /** The larger of both. */
  totalBytes: number;
  /** Of the machine or container. */
  machineBytes: number;
}

/** Node, ONNX Runtime and the program, and what they hold more once requests have come. */
const PROGRAM_BYTES = 210e6;
const BUSY_BYTES = 50e6;
/** Loading needs every linear map twice. Of the second copy, the C library keeps about this share. */
const KEPT_SHARE = 0.25;

/** `path`: a checkpoint folder or a GGUF file. Throws as the server would: CheckpointError for the model, OperatorError for the context. */
export async function memoryPlan(
  path: string,
  config: Pick<Config, "dtype" | "kvCacheMemoryBytes" | "maxModelLen" | "blockSize" | "dataParallelSize" | "threads">,
): Promise<MemoryPlan> {
  const model = readModelConfig(path);
  const weightType = config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype;
  const cacheType = await cacheTypeHere(weightType);
  const threads = config.threads ?? usableCores();
  const estimate = estimateMemory(model, weightType, cacheType, embeddingValueBytes(path), threads);
  const { kvCacheMemoryBytes, maxModelLen, dataParallelSize } = config;
  const engines =
    dataParallelSize === "auto" ? automaticEngines(threads, estimate.parameters, usableMemory()) : dataParallelSize;
  const weightBytes = estimate.weightBytes + (engines - 1) * estimate.mapBytes;
  const cacheBytes = kvCacheBytes(kvCacheMemoryBytes === null ? {} : { kvCacheBytes: kvCacheMemoryBytes });
  const positions = blockOfLinks(config.blockSize);
  const { numBlocks, maxModelLen: servedTokens } = cacheFor(
    Math.floor(cacheBytes / engines),
    maxModelLen,
    model,
    positions,
    cacheType,
  );
  const usualTokens = usualContext(model);
  const loadedBytes = PROGRAM_BYTES + weightBytes + KEPT_SHARE * engines * estimate.mapBytes;
  const loadingBytes = loadedBytes + engines * estimate.mapBytes;
  const servingBytes = loadedBytes + BUSY_BYTES + cacheBytes + engines * estimate.stepBytes;
  return {
    ...estimate,
    family: model.family,
    ...{ weightType, engines, weightBytes, usualTokens, cacheBytes, servedTokens, loadingBytes, servingBytes },
    contextTokens: model.maxPositions,
    cacheTokens: engines * numBlocks * positions,
    totalBytes: Math.max(loadingBytes, servingBytes),
    machineBytes: usableMemory(),
  };
}

/** Left for the rest of the machine. */
const OTHER_SHARE = 0.1;

export function fits({ totalBytes, machineBytes }: MemoryPlan): boolean {
  return totalBytes <= machineBytes * (1 - OTHER_SHARE);
}
