// Blocks keep their content whatever moves around them.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { KvPool } from "./kv-pool.ts";

const config = { numLayers: 2, numKvHeads: 2, headDim: 4 } as ModelConfig;
const BLOCK = 4;
const BLOCKS = 9;
const WIDTH = config.numKvHeads * config.headDim;

/** What a block holds: the value written for (layer, position, channel). */
const keyOf = (stamp: number, layer: number, slot: number, channel: number) =>
  stamp * 1000 + layer * 100 + slot * 10 + channel;

/** Position by position, as decode steps do. */
function fill(pool: KvPool, block: number, stamp: number): void {
  for (let layer = 0; layer < config.numLayers; layer++) {
    const rows = new Float32Array(BLOCK * WIDTH);
    for (let slot = 0; slot < BLOCK; slot++)
      for (let c = 0; c < WIDTH; c++) rows[slot * WIDTH + c] = keyOf(stamp, layer, slot, c);
    const values = rows.map((value) => -value);
    for (let slot = 0; slot < BLOCK; slot++) pool.writeRow(layer, rows, values, slot, slot, Int32Array.of(block));
  }
}

function expectHolds(pool: KvPool, block: number, stamp: number): void {
  for (let layer = 0; layer < config.numLayers; layer++) {
    const keys = new Float32Array(pool.blockElements);
    const values = new Float32Array(pool.blockElements);
    pool.collect(layer, Int32Array.of(block), { keys, values });
    for (let head = 0; head < config.numKvHeads; head++) {
      for (let slot = 0; slot < BLOCK; slot++) {
        for (let d = 0; d < config.headDim; d++) {
          const expected = keyOf(stamp, layer, slot, head * config.headDim + d);
          expect(keys[(head * BLOCK + slot) * config.headDim + d]).toBe(expected);
          expect(values[(head * config.headDim + d) * BLOCK + slot]).toBe(-expected);
        }
      }
    }
  }
}

it("keeps every block's content while blocks are moved together and copied", () => {
  const subset = fc.uniqueArray(fc.nat(BLOCKS - 1), { maxLength: BLOCKS });
  const action = fc.oneof(
    subset.map((blocks) => ({ type: "together" as const, blocks })),
    fc.tuple(fc.nat(BLOCKS - 1), fc.nat(BLOCKS - 1)).map(([from, to]) => ({ type: "copy" as const, from, to })),
    fc
      .tuple(fc.nat(BLOCKS - 1), fc.integer({ min: 1, max: 99 }))
      .map(([block, stamp]) => ({ type: "fill" as const, block, stamp })),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
      const pool = new KvPool(config, BLOCK, BLOCKS);
      const stamps = Array.from({ length: BLOCKS }, (_, block) => block + 100);
      for (const [block, stamp] of stamps.entries()) fill(pool, block, stamp);
      for (const step of actions) {
        if (step.type === "fill") {
          fill(pool, step.block, step.stamp);
          stamps[step.block] = step.stamp;
        } else if (step.type === "copy") {
          pool.copyBlock(step.from, step.to);
          stamps[step.to] = stamps[step.from]!;
        } else {
          pool.bringTogether(step.blocks);
          const places = step.blocks.map((block) => pool.place(block)).sort((a, b) => a - b);
          expect(places).toEqual(step.blocks.map((_, i) => i + 1));
        }
      }
      for (const [block, stamp] of stamps.entries()) expectHolds(pool, block, stamp);
      for (const memory of [...pool.keys, ...pool.values]) {
        expect(memory.subarray(0, pool.blockElements)).toEqual(new Float32Array(pool.blockElements));
      }
    }),
    { numRuns: 30 },
  );
});

it("clears what an earlier sequence left in a block", () => {
  const pool = new KvPool(config, BLOCK, BLOCKS);
  const width = config.numKvHeads * config.headDim;
  const rows = (count: number, value: number) => new Float32Array(count * width).fill(value);
  const held = Int32Array.of(2);
  for (let layer = 0; layer < config.numLayers; layer++) {
    pool.writeBlocks(layer, held, { keys: rows(BLOCK, Number.NaN), values: rows(BLOCK, Number.NaN) });
    pool.writeRow(layer, rows(1, 5), rows(1, 6), 0, 0, held);
    const [keys, values] = [new Float32Array(pool.blockElements), new Float32Array(pool.blockElements)];
    pool.collect(layer, held, { keys, values });
    expect(keys.filter((value) => value === 5)).toHaveLength(width);
    expect(values.filter((value) => value === 6)).toHaveLength(width);
    for (const memory of [keys, values])
      expect(memory.filter((value) => value === 0)).toHaveLength(width * (BLOCK - 1));
  }
});

it("returns the beginning of a block as rows, and clears the rest", () => {
  const pool = new KvPool(config, BLOCK, BLOCKS);
  pool.bringTogether([7, 3]);
  for (const block of [2, 3, 4]) fill(pool, block, block);
  const expected: number[] = [];
  for (let layer = 0; layer < config.numLayers; layer++) {
    for (const sign of [1, -1]) {
      for (let slot = 0; slot < 3; slot++)
        for (let c = 0; c < WIDTH; c++) expected.push(sign * keyOf(3, layer, slot, c));
    }
  }
  expect([...pool.readRows(3, 3)]).toEqual(expected);
  pool.clearFrom(3, 3);
  expect([...pool.readRows(3, 3)]).toEqual(expected);
  const cleared = pool.readRows(3, 4).reduce((zeros, value) => zeros + Number(value === 0), 0);
  expect(cleared).toBe(2 * config.numLayers * WIDTH);
  for (const block of [2, 4]) expectHolds(pool, block, block);
});

it("stores whole blocks wherever their places are", () => {
  const pool = new KvPool(config, BLOCK, BLOCKS);
  pool.bringTogether([7, 3]);
  const given = Float32Array.from({ length: 2 * pool.blockElements }, (_, i) => i + 1);
  const held = Int32Array.of(5, 3);
  pool.writeBlocks(1, held, { keys: given, values: given.map((value) => -value) });
  const [keys, values] = [new Float32Array(given.length), new Float32Array(given.length)];
  pool.collect(1, held, { keys, values });
  expect(keys).toEqual(given);
  expect(values).toEqual(given.map((value) => -value));
});

it("returns the memory of adjacent blocks, and null for others", () => {
  const pool = new KvPool(config, BLOCK, BLOCKS);
  for (let block = 0; block < BLOCKS; block++) fill(pool, block, block + 1);
  const inOrder = (...blocks: number[]) => pool.inOrder(Int32Array.from(blocks));
  const expectMemoryOf = (...blocks: number[]) => {
    const held = Int32Array.from(blocks);
    for (let layer = 0; layer < config.numLayers; layer++) {
      const size = held.length * pool.blockElements;
      const collected = { keys: new Float32Array(size), values: new Float32Array(size) };
      pool.collect(layer, held, collected);
      expect(pool.inOrder(held)!(layer)).toEqual(collected);
      expect(pool.inOrder(held)!(layer).keys.buffer).toBe(pool.keys[layer]!.buffer);
    }
  };
  expectMemoryOf(4, 5, 6);
  expectMemoryOf(5);
  expectMemoryOf();
  expect(inOrder(4, 6)).toBeNull();
  expect(inOrder(5, 4)).toBeNull();
  pool.bringTogether([6, 5]);
  const sorted = [5, 6].sort((a, b) => pool.place(a) - pool.place(b));
  expectMemoryOf(...sorted);
  expect(inOrder(...sorted.reverse())).toBeNull();
});
