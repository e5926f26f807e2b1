import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { chunk, fixtureFolder, openRunner, runAlone } from "../../test/reference/runner-driver.ts";
import { GraphSession } from "../graph/session.ts";

afterEach(() => vi.restoreAllMocks());

it.each([
  [false, 2],
  [true, 1],
])("adapters from the start (%s): the model is built %i times, with the same results", async (fromStart, times) => {
  const folder = fixtureFolder("llama");
  const prepared = vi.spyOn(GraphSession, "create");
  const runner = await openRunner(folder, { adaptersFromStart: fromStart });
  const prompt = chunk([5, 6, 7], 0, Int32Array.of(0));
  const before = await runAlone(runner, prompt);
  const { slot } = await runner.adapters.load(folder);
  expect(prepared).toHaveBeenCalledTimes(times);
  expect(await runAlone(runner, prompt)).toEqual(before);
  expect(await runAlone(runner, { ...prompt, adapterSlot: slot })).not.toEqual(before);
  await runner.close();
});

it("refuses an adapter after its weights were replaced, and continues with the old weights", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-replaced-"));
  cpSync(fixtureFolder("llama"), folder, { recursive: true });
  const runner = await openRunner(folder);
  const prompt = chunk([5, 6, 7], 0, Int32Array.of(0));
  const before = await runAlone(runner, prompt);
  rmSync(join(folder, "model.safetensors"));
  cpSync(join(fixtureFolder("llama"), "model.safetensors"), join(folder, "model.safetensors"));
  await expect(runner.adapters.load(folder)).rejects.toThrow(/changed since the server started/);
  expect(await runAlone(runner, prompt)).toEqual(before);
  await runner.close();
});

it("stores a prompt the same way wherever its blocks lie, beside other sequences", async () => {
  const runner = await openRunner(fixtureFolder("llama"));
  const beside = chunk([9], 0, Int32Array.of(40));
  const results: Float32Array[][] = [];
  for (const blocks of [
    [1, 2, 3, 4],
    [10, 12, 14, 11],
    // In order for the first chunk only, then for the second only.
    [20, 21, 33, 30],
    [31, 27, 24, 25],
  ]) {
    const held = Int32Array.from(blocks);
    const first = chunk(counting(32), 0, held);
    const second = chunk(counting(20), 32, held);
    const next = chunk([7], 52, held);
    const logits: Float32Array[] = [];
    for (const part of [first, second, next]) logits.push((await runner.forward([beside, part]))[1]!.slice());
    results.push(logits);
  }
  for (const other of results.slice(1)) expect(other).toEqual(results[0]);
  await runner.close();
});

function counting(length: number): number[] {
  return Array.from({ length }, (_, i) => (i * 7) % 60);
}

/** As many rows of logits as asked for, in the order of positions. */
it.each(["none", "last", "all"] as const)(
  "gives a chunk its logits (%s) beside a row that wants none",
  async (logits) => {
    const runner = await openRunner(fixtureFolder("llama"));
    const silent = { ...chunk([9], 0, Int32Array.of(0)), logits: "none" as const };
    for (const tokens of [
      [5, 6],
      [5, 6, 7],
      [5, 6, 7, 8],
    ]) {
      const prompt = chunk(tokens, 0, Int32Array.of(1));
      const all = (await runner.forward([{ ...prompt, logits: "all" }]))[0]!.slice();
      const from = { none: all.length, last: all.length - runner.vocabSize, all: 0 }[logits];
      const [nothing, given] = await runner.forward([silent, { ...prompt, logits }]);
      expect(nothing).toHaveLength(0);
      expect(given).toEqual(all.subarray(from));
    }
    await runner.close();
  },
);
