// A token's logits are bit-identical alone, in a batch of 32, with chunked prefill, after recomputation and over copied
// blocks. This holds for every family and weight type, with one and two threads, with and without an adapter.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blockOfLinks, DEFAULT_LINK_SIZE } from "../../src/app/embedded-engine.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { DecoderRunner, DecoderRunnerOptions } from "../../src/model/decoder-runner.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { eachPair } from "../../src/model/lora/lora-adapter.ts";
import { savePeft } from "../../src/model/lora/peft.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { seededRandom } from "../../src/training/random.ts";
import { blocksFrom, chunk, families, fixtureFolder, openRunner, runAlone, typesFor } from "./runner-driver.ts";
import { writeWideCheckpoint } from "./wide-checkpoint.ts";

const weightTypes: readonly WeightType[] = ["float32", "int8", "int4"];
const tokensOf = (seed: number, length: number) => Array.from({ length }, (_, i) => 3 + ((seed * 37 + i * 101) % 250));
/** Three blocks and a bit. */
const textFor = ({ positionsPerBlock }: DecoderRunner) => tokensOf(1, 3 * positionsPerBlock + 4);

/** Bits, so that -0 and 0 differ and NaN equals itself. As text, because that compares fast. */
const bits = (logits: Float32Array) =>
  Buffer.from(logits.buffer, logits.byteOffset, logits.byteLength).toString("latin1");

/** Positions on both sides of the block boundaries, and both ends. */
const edgesFor = ({ positionsPerBlock: block }: DecoderRunner) => [
  ...[0, 1, block - 2, block - 1, block, block + 1],
  ...[2 * block - 1, 2 * block, 2 * block + 1, 3 * block - 1, 3 * block, 3 * block + 3],
];

/** Logits of single tokens beside `others` at these positions of the text. Chunks compute the tokens between them. */
async function tokenByToken(
  runner: DecoderRunner,
  adapterSlot: number,
  others: number,
  positions: readonly number[],
): Promise<string> {
  const text = textFor(runner);
  const room = 8;
  const rows: string[] = [];
  // The others have different lengths and swap places with the sequence under test from step to step.
  const lengths = Array.from({ length: others }, (_, i) => 1 + ((i * 7) % 40));
  const blocks = (i: number) => blocksFrom(8 + i * room, text.length, runner.positionsPerBlock);
  for (const [i, length] of lengths.entries())
    await runner.forward([chunk(tokensOf(i, length), 0, blocks(i), { logits: "none" })]);
  const own = blocksFrom(0, text.length, runner.positionsPerBlock);
  let done = 0;
  for (const position of positions) {
    if (done < position) {
      await runner.forward([chunk(text.slice(done, position), done, own, { adapterSlot, logits: "none" })]);
    }
    done = position + 1;
    const mine = chunk([text[position]!], position, own, { adapterSlot });
    const rest = lengths.map((length, i) => {
      const at = (length + position) % 100 < 70 ? length + (position % 10) : length;
      return chunk([5 + i], Math.min(at, text.length - 1), blocks(i), { adapterSlot: i % 2 === 0 ? adapterSlot : 0 });
    });
    const batch = rest.toSpliced(position % (others + 1), 0, mine);
    const logits = await runner.forward(batch);
    rows.push(bits(logits[batch.indexOf(mine)]!));
  }
  return rows.join("");
}

/** runner and threaded: the same model with one and with two threads. */
async function expectSameBits(runner: DecoderRunner, threaded: DecoderRunner, slot: number): Promise<void> {
  const [text, edges, block] = [textFor(runner), edgesFor(runner), runner.positionsPerBlock];
  const blocks = blocksFrom(0, text.length, block);
  const whole = bits(await runAlone(runner, chunk(text, 0, blocks, { adapterSlot: slot })));
  expect(bits(await runAlone(threaded, chunk(text, 0, blocks, { adapterSlot: slot })))).toEqual(whole);

  const chunked: number[] = [];
  for (const [start, end] of [
    [0, 2 * block],
    [2 * block, 2 * block + 7],
    [2 * block + 7, 2 * block + 9],
    [2 * block + 9, text.length],
  ] as const) {
    chunked.push(...(await runAlone(runner, chunk(text.slice(start, end), start, blocks, { adapterSlot: slot }))));
  }
  expect(bits(Float32Array.from(chunked))).toEqual(whole);
  const rowAt = (position: number) =>
    whole.slice(position * runner.vocabSize * 4, (position + 1) * runner.vocabSize * 4);
  const atEdges = edges.map(rowAt).join("");
  if (block === 16) expect(await tokenByToken(runner, slot, 0, [...text.keys()])).toEqual(whole);
  else expect(await tokenByToken(runner, slot, 0, edges)).toEqual(atEdges);
  expect(await tokenByToken(runner, slot, 31, edges)).toEqual(atEdges);
  expect(await tokenByToken(threaded, slot, 3, edges)).toEqual(atEdges);

  // Copies a block and a half to another place and computes the rest there: at once, and one token first.
  const elsewhere = blocksFrom(300, text.length, block);
  const half = block + block / 2;
  for (const first of [half, half + 1]) {
    for (const i of [0, 1]) runner.copyBlock(blocks[i]!, elsewhere[i]!);
    runner.clearBlock(elsewhere[1]!, half - block);
    if (first > half)
      await runner.forward([chunk([text[half]!], half, elsewhere, { adapterSlot: slot, logits: "none" })]);
    const tail = chunk(text.slice(first), first, elsewhere, { adapterSlot: slot });
    expect(bits(await runAlone(runner, tail))).toEqual(whole.slice(4 * first * runner.vocabSize));
  }
}

const withOneAndTwoThreads = (folder: string, options: Partial<DecoderRunnerOptions>) =>
  Promise.all([1, 2].map((threads) => openRunner(folder, { threads, maxLoras: 3, ...options })));

describe.each(families)("%s", (family) => {
  it.each(typesFor(weightTypes, families.indexOf(family)))(
    "%s: the same bits however a token is computed",
    async (weightType) => {
      const folder = fixtureFolder(family);
      const [runner, threaded] = await withOneAndTwoThreads(folder, { weightType });
      await expectSameBits(runner!, threaded!, 0);
      const { slot } = await runner!.adapters.load(folder);
      await threaded!.adapters.load(folder);
      await expectSameBits(runner!, threaded!, slot);
      await Promise.all([runner!.close(), threaded!.close()]);
    },
  );
});

/** A new adapter that changes the model, in a folder of its own. */
function randomAdapter(model: string, rank: number): string {
  const config = readModelConfig(model);
  const random = seededRandom(rank);
  const adapter = identityAdapter(config, { rank, alpha: 8 }, 1);
  for (const { pair } of eachPair(adapter.layers)) for (const i of pair.b.keys()) pair.b[i] = random() - 0.5;
  const folder = join(mkdtempSync(join(tmpdir(), "flywheel-adapter-")), "adapter");
  savePeft(folder, adapter, config, { baseModel: "model" });
  return folder;
}

/** Compares `slot` in a prefill and in a decode step, alone and beside a row on each of `others`. */
async function expectSameBeside(runner: DecoderRunner, slot: number, others: readonly number[]): Promise<void> {
  const mine = chunk([5, 6, 7, 8], 0, Int32Array.of(0), { adapterSlot: slot });
  const next = chunk([9], 4, Int32Array.of(0), { adapterSlot: slot });
  const beside = others.map((adapterSlot, i) => chunk([9 + i], 0, Int32Array.of(1 + i), { adapterSlot }));
  for (const step of [mine, next]) {
    const alone = bits(await runAlone(runner, step));
    expect(bits((await runner.forward([step, ...beside]))[0]!)).toEqual(alone);
  }
}

it("gives an adapter of rank 1 the same bits alone as beside another adapter", async () => {
  const folder = fixtureFolder("llama");
  const runner = await openRunner(folder, { adaptersFromStart: true });
  const { slot } = await runner.adapters.load(randomAdapter(folder, 1));
  await expectSameBeside(runner, slot, [(await runner.adapters.load(folder)).slot]);
  await runner.close();
});

// Kernels split wide matrices differently from the small ones of the fixtures. The blocks are as large as in serving.
const SERVED = blockOfLinks(DEFAULT_LINK_SIZE);
const GPT2_WIDTHS = { n_embd: 768, n_head: 12, n_layer: 1 };
const EXPERTS = { moe_intermediate_size: 768, num_experts_per_tok: 3 };
describe.each([
  ["Qwen2.5 0.5B", { family: "qwen2", hidden: 896, intermediate: 4864, heads: 14, kvHeads: 2, headDim: 64 }],
  ["Qwen3 0.6B", { family: "qwen3", hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 8, headDim: 128 }],
  [
    "GPT-2",
    { family: "gpt2", hidden: 768, intermediate: 3072, heads: 12, kvHeads: 12, headDim: 64, more: GPT2_WIDTHS },
  ],
  [
    "Qwen3 30B with 8 of its experts",
    { family: "qwen3-moe", hidden: 2048, intermediate: 6144, heads: 32, kvHeads: 4, headDim: 128, more: EXPERTS },
  ],
  ["Gemma 3 1B", { family: "gemma3", hidden: 1152, intermediate: 6912, heads: 4, kvHeads: 1, headDim: 256 }],
] as const)("a layer as wide as that of %s", (_, widths) => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-wide-"));
  beforeAll(() => writeWideCheckpoint(folder, widths));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(typesFor(weightTypes, families.indexOf(widths.family)))(
    "%s: the same bits however a token is computed",
    async (weightType) => {
      const [runner, threaded] = await withOneAndTwoThreads(folder, { weightType, positionsPerBlock: SERVED });
      await expectSameBits(runner!, threaded!, 0);
      await Promise.all([runner!.close(), threaded!.close()]);
    },
  );

  it("with adapters: the same bits however a token is computed, in any batch", async () => {
    const [runner, threaded] = await withOneAndTwoThreads(folder, {
      weightType: "int8",
      positionsPerBlock: SERVED,
      maxLoraRank: 32,
      adaptersFromStart: true,
    });
    const slots: number[] = [];
    for (const rank of [8, 32, 3]) {
      const adapter = randomAdapter(folder, rank);
      slots.push((await runner!.adapters.load(adapter)).slot);
      await threaded!.adapters.load(adapter);
    }
    await expectSameBits(runner!, threaded!, slots[0]!);
    for (const slot of slots) {
      for (const others of [[], slots]) {
        await expectSameBeside(runner!, slot, [0, ...others]);
        await expectSameBeside(threaded!, slot, [0, ...others]);
      }
    }
    await Promise.all([runner!.close(), threaded!.close()]);
  });
});

it("gives the same bits after more than 128 blocks, where the runtime splits sums over blocks", async () => {
  const length = 2200;
  const runner = await openRunner(fixtureFolder("llama"), { threads: 2, maxPositions: length + 8 });
  const long = tokensOf(4, length);
  const blocks = blocksFrom(0, length + 8, runner.positionsPerBlock);
  const chunked = async (from: number, step: number): Promise<string> => {
    const rows: string[] = [];
    for (let at = from; at < length; at += step) {
      rows.push(bits(await runAlone(runner, chunk(long.slice(at, Math.min(at + step, length)), at, blocks))));
    }
    return rows.join("");
  };
  const first = 2080; // 130 blocks of 16
  await chunked(0, 512);
  const whole = await chunked(first, length);
  expect(await chunked(first, 47)).toEqual(whole);
  expect(await chunked(first, 1)).toEqual(whole);
  await runner.close();
});

it.each([
  [257, 1, "int8"],
  [300, 1, "int8"],
  [500, 2, "int8"],
  // With the decode row, one row more than the runtime gives to a thread (see int4-probe.ts).
  [256, 2, "int4"],
] as const)(
  "a chunk of %i tokens, which runs in pieces and parts beside a decode row, gives the bits of small chunks (threads: %i, %s)",
  async (length, threads, weightType) => {
    const runner = await openRunner(fixtureFolder("mistral"), { weightType, threads });
    const long = tokensOf(2, length);
    const neighbour = blocksFrom(200, 20, runner.positionsPerBlock);
    await runner.forward([chunk(tokensOf(3, 5), 0, neighbour, { logits: "none" })]);
    const together = await runner.forward([
      chunk([7], 5, neighbour, { logits: "last" }),
      chunk(long, 0, blocksFrom(0, length, runner.positionsPerBlock)),
    ]);
    const [beside, whole] = together.map((logits) => bits(logits));
    expect(bits(await runAlone(runner, chunk([7], 5, neighbour)))).toEqual(beside);
    const pieces: number[] = [];
    const elsewhere = blocksFrom(100, length, runner.positionsPerBlock);
    for (let start = 0; start < length; start += 49) {
      pieces.push(...(await runAlone(runner, chunk(long.slice(start, start + 49), start, elsewhere))));
    }
    expect(bits(Float32Array.from(pieces))).toEqual(whole);
    // All tokens except those already in the first block.
    for (const begun of [1, runner.positionsPerBlock - 1]) {
      const rest = await runAlone(runner, chunk(long.slice(begun), begun, elsewhere));
      expect(bits(rest)).toEqual(whole!.slice(4 * begun * runner.vocabSize));
    }
    const last = await runAlone(runner, chunk(long, 0, elsewhere, { logits: "last" }));
    expect(bits(last)).toEqual(whole!.slice(-4 * runner.vocabSize));
    await runner.close();
  },
);
