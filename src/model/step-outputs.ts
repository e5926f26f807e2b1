// Which outputs a run of the serving graph returns, and how its new keys and values get into the cache.
// decoder-graph.ts gives their shapes. If a prefill chunk's blocks are adjacent in the pool, the runtime writes them in
// place.

import { floats, type Outputs } from "../graph/session.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { blockOutputs } from "./decoder-graph.ts";
import type { BlockMemory, KvPool } from "./kv-pool.ts";
import type { Chunk } from "./runner.ts";

export interface StepOutputs {
  /** Names of the outputs. Empty ones are left out, because even those take time. */
  wanted: string[];
  /** Memory that the runtime writes some of them to. */
  into: Outputs;
  /** Stores the outputs that are not in place yet. */
  remember(outputs: Outputs): void;
}

/** Call this after the run's inputs are prepared, which moves blocks. A decoding chunk without blocks is not stored. */
export function stepOutputs(
  config: ModelConfig,
  pool: KvPool,
  decoding: readonly Chunk[],
  prefill: Chunk | null,
): StepOutputs {
  const blocks = prefill === null ? new Int32Array(0) : writtenBlocks(prefill, pool.positionsPerBlock);
  const inPlace = pool.inOrder(blocks);
  const ofRows = decoding.length === 0 ? [] : ["new_keys", "new_values"];
  const ofBlocks = prefill === null ? [] : config.layers.flatMap((_, i) => Object.values(blockOutputs(i)));
  return {
    wanted: ["logits", ...ofRows, ...ofBlocks],
    into:
      prefill === null || inPlace === null ? {} : blockTargets(config, pool.positionsPerBlock, blocks.length, inPlace),
    remember(outputs) {
      if (decoding.length > 0) rememberRows(config, pool, decoding, outputs);
      if (inPlace === null) rememberBlocks(config, pool, blocks, outputs);
    },
  };
}

export function dataOf(outputs: Outputs, name: string): Float32Array {
  return outputs[name]!.data as Float32Array;
}

function writtenBlocks({ start, tokens, blocks }: Chunk, positionsPerBlock: number): Int32Array {
  return blocks.subarray(Math.floor(start / positionsPerBlock), Math.ceil((start + tokens.length) / positionsPerBlock));
}

function blockTargets(
  { numKvHeads, headDim, layers }: ModelConfig,
  positionsPerBlock: number,
  count: number,
  memoryOf: (layer: number) => BlockMemory,
): Outputs {
  const targets: Outputs = {};
  for (const layer of layers.keys()) {
    const names = blockOutputs(layer);
    const { keys, values } = memoryOf(layer);
    targets[names.keys] = floats(keys, [count, numKvHeads, positionsPerBlock, headDim]);
    targets[names.values] = floats(values, [count, numKvHeads, headDim, positionsPerBlock]);
  }
  return targets;
}

function rememberRows({ layers }: ModelConfig, pool: KvPool, decoding: readonly Chunk[], outputs: Outputs): void {
  const [keys, values] = [dataOf(outputs, "new_keys"), dataOf(outputs, "new_values")];
  for (const layer of layers.keys()) {
    for (const [i, { start, blocks }] of decoding.entries()) {
      if (blocks.length > 0) pool.writeRow(layer, keys, values, layer * decoding.length + i, start, blocks);
    }
  }
}

function rememberBlocks({ layers }: ModelConfig, pool: KvPool, blocks: Int32Array, outputs: Outputs): void {
  for (const layer of layers.keys()) {
    const names = blockOutputs(layer);
    pool.writeBlocks(layer, blocks, { keys: dataOf(outputs, names.keys), values: dataOf(outputs, names.values) });
  }
}
