import { expect, it } from "vitest";
import { chunk, fixtureFolder } from "../../../test/reference/runner-driver.ts";
import type { Feeds } from "../../graph/session.ts";
import { identityAdapter } from "../../training/files/adapter-files.ts";
import { readModelConfig } from "../checkpoint/model-config.ts";
import { GraphFactors } from "./graph-factors.ts";

const config = readModelConfig(fixtureFolder("llama"));

/** Four adapters, in slots 1 to 4. */
function loaded(): GraphFactors {
  const slots = new GraphFactors(config);
  for (let i = 1; i <= 4; i++) slots.set(i, identityAdapter(config, { rank: 2 * i, alpha: 8 }, i));
  return slots;
}

/** The inputs of a step with a row on each of these slots. */
function feedsOf(slots: GraphFactors, used: readonly number[]): Feeds {
  const feeds: Feeds = {};
  slots.addFeeds(
    feeds,
    used.map((adapterSlot) => chunk([5], 0, new Int32Array(0), { adapterSlot })),
  );
  return feeds;
}

const factors = (feeds: Feeds) => feeds["lora_a.0.qkv"]!;

it("builds few layouts however steps mix adapters, and gives each row its own factors", () => {
  const slots = loaded();
  const mixes = [[1], [2], [3], [4], [1, 2], [0, 3], [2, 3, 4], [0], [4, 1], [1, 2, 3, 4], [3, 1]];
  for (const used of mixes) factors(feedsOf(slots, used));
  const known = new Set(mixes.map((used) => factors(feedsOf(slots, used))));
  for (let round = 0; round < 3; round++) {
    for (const used of mixes) {
      const feeds = feedsOf(slots, used);
      expect(known).toContain(factors(feeds));
      const [n, columns] = feeds["lora_mask.1"]!.dims as [number, number];
      const mask = feeds["lora_mask.1"]!.data as Float32Array;
      for (let row = 0; row < n; row++) {
        const scales = new Set(mask.subarray(row * columns, (row + 1) * columns).filter((value) => value !== 0));
        expect([...scales]).toEqual(used[row] === 0 ? [] : [Math.fround(8 / (2 * used[row]!))]);
      }
    }
  }
  expect(factors(feedsOf(slots, [0, 0])).dims).toEqual([64, 0]); // the base model alone pays for none
});

it("gives adapters that are used together for long a layout of their own", () => {
  const slots = loaded();
  for (const used of [[1], [2], [3], [4], [1, 4]]) feedsOf(slots, used);
  expect(factors(feedsOf(slots, [1, 2])).dims[1]).toBe(4 * 3 * 8);
  for (let step = 0; step < 32; step++) feedsOf(slots, [1, 2]);
  expect(factors(feedsOf(slots, [1, 2])).dims[1]).toBe(2 * 3 * 4);
});
