// What a server with these options would take of this machine's memory, without reading the weights.

import type { Config } from "../config/options.ts";
import { readModelConfig } from "../model/checkpoint/model-config.ts";
import type { WeightType } from "../model/linear/linear.ts";
import { estimateMemory, type MemoryEstimate } from "../model/memory-estimate.ts";
import { DEFAULT_WEIGHT_TYPE, kvCacheBytes, usableMemory } from "./embedded-engine.ts";

export interface MemoryPlan extends MemoryEstimate {
  family: string;
  weightType: WeightType;
  /** The model's own. */
  contextTokens: number;
  cacheBytes: number;
  /** How many tokens, of all sequences together, the cache holds. */
  cacheTokens: number;
  /** Longest sequence that can be served. */
  servedTokens: number;
  /** Everything that is counted here. */
  totalBytes: number;
  /** Of the machine or container. */
  machineBytes: number;
}

/** `folder`: a checkpoint folder or a GGUF file. Throws CheckpointError for a model that cannot be served. */
export function memoryPlan(
  folder: string,
  config: Pick<Config, "dtype" | "kvCacheMemoryBytes" | "maxModelLen">,
): MemoryPlan {
  const model = readModelConfig(folder);
  const weightType = config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype;
  const estimate = estimateMemory(model, weightType);
  const { kvCacheMemoryBytes } = config;
  const cacheBytes = kvCacheBytes(kvCacheMemoryBytes === null ? {} : { kvCacheBytes: kvCacheMemoryBytes });
  const cacheTokens = Math.floor(cacheBytes / estimate.cacheBytesPerToken);
  return {
    ...estimate,
    family: model.family,
    weightType,
    contextTokens: model.maxPositions,
    cacheBytes,
    cacheTokens,
    servedTokens: Math.min(config.maxModelLen ?? model.maxPositions, model.maxPositions, cacheTokens),
    totalBytes: estimate.weightBytes + cacheBytes,
    machineBytes: usableMemory(),
  };
}

/** Left for Node, the runtime, a step's activations and the rest of the machine. */
const OTHER_SHARE = 0.15;

export function fits({ totalBytes, machineBytes }: MemoryPlan): boolean {
  return totalBytes <= machineBytes * (1 - OTHER_SHARE);
}
