// How long a step of 32 sequences takes if they use different adapters.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { DecoderRunner } from "../../src/model/decoder-runner.ts";
import { eachPair } from "../../src/model/lora/lora-adapter.ts";
import { savePeft } from "../../src/model/lora/peft.ts";
import type { Chunk } from "../../src/model/runner.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { Random } from "../models/random.ts";
import { median } from "../process/stopwatch.ts";

const SEQUENCES = 32;
const PAST = 256;
const RANK = 16;
const STEPS = 24;
const POSITIONS_PER_BLOCK = 64;
const BLOCKS = Math.ceil((PAST + STEPS + 1) / POSITIONS_PER_BLOCK);

/**
 * Milliseconds of a step with each of these numbers of adapters. Steps take turns, because a machine's speed changes from second
 * to second. Without adapters (0), the graph has no inputs for them.
 */
export async function stepTimes(folder: string, threads: number, counts: readonly number[]): Promise<number[]> {
  const saved = mkdtempSync(join(tmpdir(), "flywheel-adapters-"));
  const batches: Batch[] = [];
  try {
    for (const adapters of counts) batches.push(await startBatch(folder, saved, threads, adapters));
    for (let step = 0; step < STEPS; step++) {
      for (const { runner, chunk, times } of batches) {
        const began = performance.now();
        await runner.forward(Array.from({ length: SEQUENCES }, (_, i) => chunk(i, [i + step], PAST + step)));
        times.push(performance.now() - began);
      }
    }
    return batches.map(({ times }) => median(times));
  } finally {
    rmSync(saved, { recursive: true, force: true });
    for (const { runner } of batches) await runner.close();
  }
}

interface Batch {
  runner: DecoderRunner;
  /** Tokens of sequence i from this position on. */
  chunk(i: number, tokens: number[], start: number): Chunk;
  times: number[];
}

/** Sequences with their prompts, which share so many adapters. */
async function startBatch(folder: string, saved: string, threads: number, adapters: number): Promise<Batch> {
  const checkpoint = openCheckpoint(folder);
  const runner = await DecoderRunner.create(checkpoint, {
    weightType: "int8",
    threads,
    positionsPerBlock: POSITIONS_PER_BLOCK,
    numBlocks: SEQUENCES * BLOCKS,
    maxPositions: 2 * PAST,
    maxLoras: Math.max(1, adapters),
    maxLoraRank: RANK,
    adaptersFromStart: adapters > 0,
  });
  checkpoint.close();
  const slots: number[] = [];
  for (let i = 0; i < adapters; i++) slots.push(await loadAdapter(runner, folder, join(saved, `${adapters}-${i}`), i));
  const chunk = (i: number, tokens: number[], start: number): Chunk => ({
    tokens: Int32Array.from(tokens),
    start,
    blocks: Int32Array.from({ length: BLOCKS }, (_, block) => i * BLOCKS + block),
    adapterSlot: adapters === 0 ? 0 : slots[i % adapters]!,
    logits: "last",
  });
  const prompt = new Random(7).tokens(PAST, runner.vocabSize);
  for (let i = 0; i < SEQUENCES; i++) await runner.forward([chunk(i, prompt, 0)]);
  return { runner, chunk, times: [] };
}

async function loadAdapter(runner: DecoderRunner, model: string, folder: string, seed: number): Promise<number> {
  const checkpoint = openCheckpoint(model);
  const adapter = identityAdapter(checkpoint.config, { rank: RANK, alpha: RANK }, seed);
  const random = new Random(seed);
  for (const { pair } of eachPair(adapter.layers)) for (const i of pair.b.keys()) pair.b[i] = random.normal() / 100;
  savePeft(folder, adapter, checkpoint.config, { baseModel: "random" });
  checkpoint.close();
  return (await runner.adapters.load(folder)).slot;
}
