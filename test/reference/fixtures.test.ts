// Compares every family with reference numbers: prefill, prefill + decode, one batch, chunks, adapters.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DecoderRunner } from "../../src/model/decoder-runner.ts";
import {
  argmax,
  blocksFrom,
  chunk,
  families,
  fixtureFolder,
  openRunner,
  Reference,
  runAlone,
  worstDifference,
} from "./runner-driver.ts";

const TOLERANCE = 1e-4;
const NEW_TOKENS = 24;

describe.each(families)("%s in float32", (family) => {
  let runner: DecoderRunner;
  let reference: Reference;
  let vocab: number;
  const prompts = [0, 1, 2];
  const blocks = (prompt: number, tokens: number) => blocksFrom(prompt * 16, tokens, runner.positionsPerBlock);

  beforeAll(async () => {
    runner = await openRunner(fixtureFolder(family));
    reference = new Reference(family);
    vocab = runner.vocabSize;
  });
  afterAll(async () => {
    reference.close();
    await runner.close();
  });

  it("gives the reference logits for whole prompts", async () => {
    for (const prompt of prompts) {
      const ids = reference.ids(`ids.${prompt}`);
      const logits = await runAlone(runner, chunk(ids, 0, blocks(prompt, ids.length)));
      expect(worstDifference(logits, reference.floats(`logits.${prompt}`), vocab)).toBeLessThan(TOLERANCE);
    }
  });

  it("gives the reference logits in chunks of one block and token by token", async () => {
    const ids = reference.ids("ids.2");
    for (const size of [runner.positionsPerBlock, 1]) {
      const parts: number[] = [];
      for (let start = 0; start < ids.length; start += size) {
        parts.push(...(await runAlone(runner, chunk(ids.slice(start, start + size), start, blocks(0, ids.length)))));
      }
      expect(worstDifference(Float32Array.from(parts), reference.floats("logits.2"), vocab)).toBeLessThan(TOLERANCE);
    }
  });

  it("continues all prompts greedily in one batch as the reference does", async () => {
    const sequences = prompts.map((prompt) => reference.ids(`ids.${prompt}`));
    const held = prompts.map((prompt) => blocks(prompt, sequences[prompt]!.length + NEW_TOKENS));
    let rows = await runner.forward(prompts.map((p) => chunk(sequences[p]!, 0, held[p]!, { logits: "last" })));
    const output: number[][] = prompts.map(() => []);
    for (let step = 0; step < NEW_TOKENS; step++) {
      const next = rows.map((row) => argmax(row));
      for (const prompt of prompts) output[prompt]!.push(next[prompt]!);
      const chunks = prompts.map((p) => chunk([next[p]!], sequences[p]!.length + step, held[p]!, { logits: "last" }));
      rows = await runner.forward(chunks);
    }
    expect(output).toEqual(reference.greedy);
  });

  it("gives the reference logits with the adapter, beside rows of the base model", async () => {
    const { slot } = await runner.adapters.load(fixtureFolder(family));
    const ids = reference.ids("train.ids");
    const adapted = chunk(ids, 0, blocks(0, ids.length), { adapterSlot: slot });
    expect(worstDifference(await runAlone(runner, adapted), reference.floats("lora.logits"), vocab)).toBeLessThan(
      TOLERANCE,
    );

    const prompt = reference.ids("ids.1");
    const half = prompt.slice(0, -1);
    await runner.forward([chunk(half, 0, blocks(1, prompt.length))]);
    const last = chunk(prompt.slice(-1), half.length, blocks(1, prompt.length));
    const [base, withAdapter] = await runner.forward([last, adapted]);
    expect(worstDifference(withAdapter!, reference.floats("lora.logits"), vocab)).toBeLessThan(TOLERANCE);
    const expected = reference.floats("logits.1").slice(half.length * vocab);
    expect(worstDifference(base!, expected, vocab)).toBeLessThan(TOLERANCE);
  });
});

it("phi4-mini: with the long factors, a sequence beyond the original context has the reference logits", async () => {
  const reference = new Reference("phi4-mini");
  const ids = reference.ids("long.ids");
  const expected = reference.floats("long.logits");
  const worst = async (longFactors: boolean) => {
    const runner = await openRunner(fixtureFolder("phi4-mini"), { maxPositions: 4096, longFactors });
    const blocks = blocksFrom(0, ids.length, runner.positionsPerBlock);
    const logits: Float32Array[] = [];
    for (let start = 0; start < ids.length; start += 200) {
      logits.push(await runAlone(runner, chunk(ids.slice(start, start + 200), start, blocks)));
    }
    await runner.close();
    const last = logits.at(-1)!.slice(-expected.length);
    return worstDifference(last, expected, runner.vocabSize);
  };
  expect(await worst(true)).toBeLessThan(TOLERANCE);
  expect(await worst(false)).toBeGreaterThan(100 * TOLERANCE);
  reference.close();
});
