import { expect, it } from "vitest";
import { chunk, fixtureFolder } from "../../../test/reference/runner-driver.ts";
import type { Feeds } from "../../graph/session.ts";
import { identityAdapter } from "../../training/files/adapter-files.ts";
import { readModelConfig } from "../checkpoint/model-config.ts";
import { KernelFactors } from "./kernel-factors.ts";
import { adapterLayout, HEADER, PANEL } from "./kernel-lora.ts";
import { eachPair } from "./lora-adapter.ts";

const config = readModelConfig(fixtureFolder("llama"));

/** The inputs of a step with two rows on each of these slots. */
function feedsOf(factors: KernelFactors, used: readonly number[]) {
  const feeds: Feeds = {};
  factors.addFeeds(
    feeds,
    used.map((adapterSlot) => chunk([5, 6], 0, new Int32Array(0), { adapterSlot })),
  );
  const begins = Array.from(feeds.lora_begins!.data as BigInt64Array, Number);
  return { memory: feeds.lora_factors!.data as Float32Array, begins };
}

const adapterOf = (rank: number, seed: number) => identityAdapter(config, { rank, alpha: 8 }, seed);

it("keeps each adapter in one piece that stays where it is", () => {
  const factors = new KernelFactors(config);
  expect(feedsOf(factors, [0])).toEqual({ memory: new Float32Array(0), begins: [-1, -1] });
  factors.set(1, adapterOf(4, 1));
  factors.set(2, adapterOf(8, 2));
  const { header, numbers } = adapterLayout(config);
  const second = header + 4 * numbers;
  const before = feedsOf(factors, [2, 0, 1]);
  expect(before.begins).toEqual([second, second, -1, -1, 0, 0]);
  expect(before.memory.length).toBe(second + header + 8 * numbers);
  expect(before.memory[HEADER.rank]).toBe(4);
  expect(before.memory[second + HEADER.scale]).toBe(1);
  expect(feedsOf(factors, [1]).memory).toBe(before.memory);
});

it("reuses the place of an adapter that went", () => {
  const factors = new KernelFactors(config);
  for (const slot of [1, 2, 3]) factors.set(slot, adapterOf(4, slot));
  const { memory, begins } = feedsOf(factors, [2]);
  factors.delete(2);
  factors.set(4, adapterOf(2, 4));
  expect(feedsOf(factors, [4])).toEqual({ memory, begins });
  factors.set(3, adapterOf(8, 5)); // no longer fits between others
  expect(feedsOf(factors, [3, 1]).begins).toEqual([...feedsOf(factors, [3]).begins, 0, 0]);
  expect(feedsOf(factors, [3]).memory.length).toBeGreaterThan(memory.length);
  expect(feedsOf(factors, [1]).memory.slice(0, begins[0])).toEqual(memory.slice(0, begins[0]));
});

it("lays out the factors of every map, and flags those that the adapter leaves alone", () => {
  const adapter = adapterOf(3, 7);
  for (const { pair } of eachPair(adapter.layers)) for (const i of pair.b.keys()) pair.b[i] = i;
  const { v, ...others } = adapter.layers[1]!;
  const factors = new KernelFactors(config);
  factors.set(1, { ...adapter, layers: adapter.layers.with(1, others) });
  const { memory } = feedsOf(factors, [1]);
  const { header, sites } = adapterLayout(config);
  const { place, firstFlag, inputs, outputs } = sites[1]!.qkv!;
  expect(v).toBeDefined();
  expect([...memory.subarray(HEADER.flags + firstFlag, HEADER.flags + firstFlag + 3)]).toEqual([1, 1, 0]);
  const first = header + 3 * place;
  expect(memory.slice(first + 3 * inputs, first + 6 * inputs)).toEqual(adapter.layers[1]!.k!.a);
  const b = first + 9 * inputs + 3 * outputs[0]!;
  const width = Math.min(PANEL, outputs[1]!);
  expect([...memory.subarray(b, b + width)]).toEqual(Array.from({ length: width }, (_, i) => 3 * i));
});
