// The module of an engine on a GPU, in the engine thread: opens the checkpoint, starts the process that will own the GPU
// and tells it what to run.

import { GpuLoop, MASK_SLOTS } from "../engine/gpu/gpu-loop.ts";
import { GpuProcess, type GpuProcessOptions } from "../engine/gpu/gpu-process.ts";
import type { Loop, LoopParts } from "../engine/thread/engine-loop.ts";
import { GrammarConstraintFactory } from "../grammar/match/constraint-factory.ts";
import type { TokenVocabulary } from "../grammar/match/token-vocabulary.ts";
import { reopenCheckpoint } from "../model/checkpoint/checkpoint.ts";
import { describeModel } from "../model/describe.ts";

/** Tokens of a page of keys and values. */
export const PAGE_TOKENS = 64;

export interface GpuHostOptions {
  /** A checkpoint folder in Hugging Face layout. */
  folder: string;
  /** Identity of the checkpoint when the engine was made. A restarted process must not read other weights. */
  identity: string;
  process: GpuProcessOptions;
  device: "cuda" | "cpu";
  dtype: "bfloat16" | "float32";
  memory: { gpuBytes: number | null; kvBytes: number | null };
  maxPositions: number;
  maxLoras: number;
  maxLoraRank: number;
  /** Vocabulary for token masks; null = this engine takes no grammars. */
  vocabulary: TokenVocabulary | null;
}

export async function createLoop(given: unknown, parts: LoopParts): Promise<Loop> {
  const { folder, identity, vocabulary, device, dtype, memory, ...limits } = given as GpuHostOptions;
  const { maxPositions, maxLoras, maxLoraRank } = limits;
  const { maxNumSeqs, maxNumBatchedTokens, prefixCaching } = parts.options;
  const checkpoint = reopenCheckpoint(folder, identity);
  const { config } = checkpoint;
  const description = describeModel(checkpoint, maxPositions);
  checkpoint.close();
  const { process, ready } = await GpuProcess.start(limits.process, {
    ...{ device, dtype, memory },
    limits: {
      ...{ pageTokens: PAGE_TOKENS, maxPositions, maxLoras, maxLoraRank, prefixCaching },
      maxRows: maxNumSeqs,
      maxStepTokens: maxNumBatchedTokens,
      maskSlots: MASK_SLOTS,
    },
    ...description,
  });
  const numBlocks = ready.number("pages");
  const room = { vocabSize: config.vocabSize, maxPositions, positionsPerBlock: PAGE_TOKENS, numBlocks };
  const constraints = vocabulary === null ? null : new GrammarConstraintFactory(vocabulary);
  constraints?.prepare();
  return new GpuLoop({ ...parts, process, config, room, maxLoras, maxLoraRank, constraints });
}
