// As what keys and values are stored, and how much memory that takes.

import type { ModelConfig } from "../checkpoint/model-config.ts";

export type CacheType = "float32" | "float16";

const BYTES: Record<CacheType, number> = { float32: 4, float16: 2 };

/**
 * Rounded weights lose far more than a cache in float16 does, which reads and holds half as many bytes. Only the native
 * module has it. `kernels`: whether that runs here.
 */
export function cacheTypeFor(rounded: boolean, kernels: boolean): CacheType {
  return rounded && kernels ? "float16" : "float32";
}

/** Bytes of one block over all layers. */
export function blockBytes(config: ModelConfig, positionsPerBlock: number, type: CacheType): number {
  return 2 * config.numLayers * config.numKvHeads * config.headDim * positionsPerBlock * BYTES[type];
}
