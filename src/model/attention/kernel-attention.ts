// Attention of the serving graph as one operation of the native module (native/attention/attention.c), which also stores the new
// keys and values in the cache. A token's result has the same bits however it was computed.

import { FLYWHEEL, type Graph } from "../../graph/graph.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { CacheType } from "./cache-type.ts";
import type { ServedAttention } from "./served-attention.ts";

/** The module sums the blocks of a group, and then the groups: GROUP_BLOCKS in native/attention/attention.c. */
export const BLOCKS_PER_GROUP = 8;

/** Attributes of the module's attention that do not depend on the layer. */
export function attentionAttributes(config: ModelConfig, positionsPerBlock: number) {
  return {
    heads: config.numHeads,
    kv_heads: config.numKvHeads,
    head_dim: config.headDim,
    block: positionsPerBlock,
    scale: { float: config.attentionScale },
    softcap: { float: config.attentionSoftcap ?? 0 },
  };
}

/**
 * Graph inputs: spans int64 [sequences, 4] = first row, rows, first position, where its blocks begin in `blocks`; blocks
 * int64: blocks of each sequence in order of position; cache.LAYER: the memory of all blocks, which the operation writes to.
 */
export function kernelAttention(
  g: Graph,
  config: ModelConfig,
  positionsPerBlock: number,
  cacheType: CacheType,
): ServedAttention {
  const spans = g.input("spans", ["sequences", 4], "int64");
  const blocks = g.input("blocks", ["blocks"], "int64");
  const shared = attentionAttributes(config, positionsPerBlock);
  return {
    attend(at, layer, { all, normed, rope }, wanted) {
      const cache = g.input(`cache.${layer}`, ["places", blockElements(config, positionsPerBlock)], cacheType);
      // It reads queries, keys and values where the linear layer left them, and rotates them itself.
      const turn = [rope?.cos ?? null, rope?.sin ?? null];
      const operands = [normed ?? all, all, ...turn, cache, spans, blocks, ...(wanted === null ? [] : [wanted])];
      const shape = [wanted === null ? "n" : "m", 1, config.numHeads * config.headDim];
      const attributes = { ...shared, window: config.layers[layer]!.window ?? 0 };
      return at.add("PagedAttention", operands, [{ shape }], attributes, FLYWHEEL)[0]!;
    },
    finish() {},
  };
}

/** Numbers in one block of one layer: keys [kvHeads, headDim, positions], then values [kvHeads, positions, headDim]. */
export function blockElements({ numKvHeads, headDim }: ModelConfig, positionsPerBlock: number): number {
  return 2 * numKvHeads * headDim * positionsPerBlock;
}
