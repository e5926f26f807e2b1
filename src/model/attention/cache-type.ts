// The type in which keys and values are stored, and the memory that takes.

import type { ModelConfig } from "../checkpoint/model-config.ts";

export type CacheType = "float32" | "float16";

const BYTES: Record<CacheType, number> = { float32: 4, float16: 2 };

/**
 * Rounding weights costs far more accuracy than a cache in float16, which takes half the memory and is read faster. Only the
 * native module has one. `kernels`: whether the module runs here.
 */
export function cacheTypeFor(rounded: boolean, kernels: boolean): CacheType {
  return rounded && kernels ? "float16" : "float32";
}

/** Bytes of one block over all layers. */
export function blockBytes(config: ModelConfig, positionsPerBlock: number, type: CacheType): number {
  return 2 * config.numLayers * config.numKvHeads * config.headDim * positionsPerBlock * BYTES[type];
}
