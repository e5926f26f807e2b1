// PagedAttention and PlainAttention, operations of the native module, in graphs.

import { describe, expect, it } from "vitest";
import { asNumbers, noise, sessionOf } from "../../../test/native/graphs.ts";
import { FLYWHEEL, type Graph, type Value } from "../graph.ts";
import type { Tensor } from "../onnx-runtime.ts";
import * as ops from "../ops.ts";
import { bools, type Feeds, floats, int64s } from "../session.ts";
import { nativeModule } from "./native-module.ts";

describe.skipIf(nativeModule === null)("attention", () => {
  const [heads, kvHeads, headDim, block] = [4, 2, 8, 4];
  const shape = { heads, kv_heads: kvHeads, head_dim: headDim, block, scale: { float: 0.3 }, softcap: { float: 0 } };
  const blockFloats = 2 * kvHeads * headDim * block;
  const length = 23;
  const q = noise(length * heads * headDim, 2);
  const k = noise(length * kvHeads * headDim, 3);
  const v = noise(length * kvHeads * headDim, 5);

  /** The attention of one position, summed in double precision. */
  function attended(position: number, window: number): number[] {
    const out = new Array<number>(heads * headDim).fill(0);
    for (let head = 0; head < heads; head++) {
      const kvHead = Math.floor((head * kvHeads) / heads);
      const at = (row: number) => (row * kvHeads + kvHead) * headDim;
      let total = 0;
      for (let j = window > 0 ? Math.max(0, position + 1 - window) : 0; j <= position; j++) {
        let score = 0;
        for (let d = 0; d < headDim; d++) score += q[(position * heads + head) * headDim + d]! * k[at(j) + d]!;
        const weight = Math.exp(0.3 * score);
        total += weight;
        for (let d = 0; d < headDim; d++) out[head * headDim + d]! += weight * v[at(j) + d]!;
      }
      for (let d = 0; d < headDim; d++) out[head * headDim + d]! /= total;
    }
    return out;
  }

  function expectClose(found: readonly number[], expected: readonly number[]): void {
    expect(found).toHaveLength(expected.length);
    for (const [i, value] of expected.entries()) expect(Math.abs(found[i]! - value)).toBeLessThan(1e-5);
  }

  function paged(g: Graph, at: Graph, window: number, wanted: Value | null): Value {
    const inputs = [
      g.input("q", ["n", heads, 1, headDim]),
      g.input("k", ["n", kvHeads, 1, headDim]),
      g.input("v", ["n", kvHeads, 1, headDim]),
      g.input("cache", ["places", blockFloats]),
      g.input("spans", ["m", 4], "int64"),
      g.input("blocks", ["b"], "int64"),
      ...(wanted ? [wanted] : []),
    ];
    const out = [{ shape: ["w", 1, heads * headDim] }];
    return at.add("PagedAttention", inputs, out, { ...shape, window }, FLYWHEEL)[0]!;
  }

  const rowsOf = (data: Float32Array, of: number, from: number, to: number) =>
    floats(data.subarray(from * of * headDim, to * of * headDim), [to - from, of, 1, headDim]);

  const cache = (places: number) => floats(new Float32Array(places * blockFloats), [places, blockFloats]);
  const integers = (...values: number[]) => int64s(BigInt64Array.from(values, BigInt), [values.length]);
  const spansOf = (...spans: number[][]) => int64s(BigInt64Array.from(spans.flat(), BigInt), [spans.length, 4]);
  const sixBlocks = [7, 2, 5, 0, 3, 6];
  const feedsFor = (from: number, to: number, memory: Tensor): Feeds => ({
    q: rowsOf(q, heads, from, to),
    k: rowsOf(k, kvHeads, from, to),
    v: rowsOf(v, kvHeads, from, to),
    cache: memory,
    spans: spansOf([0, to - from, from, 1]),
    blocks: integers(1, ...sixBlocks),
  });

  it("reads and writes a cache in blocks, in a branch too, however a prompt is cut", async () => {
    for (const window of [0, 6]) {
      const expected = Array.from({ length }, (_, i) => attended(i, window)).flat();
      const found: number[][] = [];
      for (const [threads, step] of [
        [1, length],
        [2, 5],
        [1, 1],
      ] as const) {
        const session = await sessionOf((g) => {
          const out = [["w", 1, heads * headDim]];
          const [first] = ops.choose(g, g.input("yes", [], "bool"), out, {
            yes: (sub) => [paged(g, sub, window, null)],
            no: (sub) => [ops.slice(sub, g.inputs[1]!, 0, 0, 1, 1)],
          });
          return { y: first! };
        }, threads);
        const memory = cache(8);
        const rows: number[] = [];
        for (let from = 0; from < length; from += step) {
          const to = Math.min(length, from + step);
          const feeds = { ...feedsFor(from, to, memory), yes: bools(Uint8Array.of(1), []) };
          const { y } = await session.run(feeds, { y: null });
          expect(y!.dims).toEqual([to - from, 1, heads * headDim]);
          rows.push(...asNumbers(y));
        }
        expectClose(rows, expected);
        found.push(rows);
        await session.release();
      }
      for (const rows of found) expect(rows).toEqual(found[0]);
    }
  });

  it("gives the wanted rows of several sequences", async () => {
    const session = await sessionOf((g) => ({ y: paged(g, g, 0, g.input("wanted", ["w"], "int64")) }));
    // Two sequences with the same content, and two rows of none.
    const feeds: Feeds = {
      q: rowsOf(q, heads, 0, 10),
      k: rowsOf(k, kvHeads, 0, 10),
      v: rowsOf(v, kvHeads, 0, 10),
      cache: cache(4),
      spans: spansOf([0, 5, 0, 0], [5, 0, 0, 0], [5, 3, 0, 2]),
      blocks: integers(3, 1, 0),
      wanted: integers(9, 4, 0, 5),
    };
    const { y } = await session.run(feeds, { y: null });
    const width = heads * headDim;
    expect(y!.dims).toEqual([4, 1, width]);
    expect(asNumbers(y).slice(0, width)).toEqual(new Array(width).fill(0));
    expectClose(asNumbers(y).slice(width, 3 * width), [...attended(4, 0), ...attended(0, 0)]);
    // A sequence of one position is its value.
    expectClose(asNumbers(y).slice(3 * width, 3 * width + headDim), [...v.subarray(5 * 16, 5 * 16 + headDim)]);
    const none = await session.run({ ...feeds, wanted: integers() }, { y: null });
    expect(none.y!.dims).toEqual([0, 1, width]);
    await session.release();
  });

  it("refuses rows and blocks that do not exist", async () => {
    const session = await sessionOf((g) => ({ y: paged(g, g, 0, g.input("wanted", ["w"], "int64")) }));
    const good = { ...feedsFor(0, 8, cache(8)), wanted: integers(0) };
    const run = (feeds: Feeds) => session.run({ ...good, ...feeds }, { y: null });
    const huge = 2 ** 52;
    for (const span of [
      [-1, 2, 0, 0],
      [0, 9, 0, 0],
      [8, 1, 0, 0],
      [0, -1, 0, 0],
      [huge, 1, 0, 0],
      [1, huge, 0, 0],
      [0, 1, -1, 0],
      [0, 1, 28, 0],
      [0, 1, huge, 0],
      [0, 1, 0, -1],
      [0, 1, 0, 7],
      [0, 1, 0, huge],
    ]) {
      await expect(run({ spans: spansOf(span) })).rejects.toThrow("do not exist");
    }
    await expect(run({ blocks: integers(0, 8, 1) })).rejects.toThrow("do not exist");
    await expect(run({ blocks: integers(0, 1, -1) })).rejects.toThrow("do not exist");
    await expect(run({ wanted: integers(8) })).rejects.toThrow("no such wanted row");
    await expect(run({ wanted: integers(-1) })).rejects.toThrow("no such wanted row");
    await expect(run({ k: rowsOf(k, kvHeads, 0, 7) })).rejects.toThrow("same rows");
    await run({});
    await session.release();
  });

  it("attends to keys that are in no cache", async () => {
    for (const [threads, window] of [
      [1, 0],
      [2, 6],
    ] as const) {
      const session = await sessionOf((g) => {
        const inputs = [
          g.input("q", ["c", heads * headDim]),
          g.input("k", ["s", kvHeads * headDim]),
          g.input("v", ["s", kvHeads * headDim]),
          g.input("window", [1], "int64"),
        ];
        return { y: g.add("PlainAttention", inputs, [{ shape: ["c", heads * headDim] }], shape, FLYWHEEL)[0]! };
      }, threads);
      const feeds = {
        q: floats(q.subarray(20 * heads * headDim), [3, heads * headDim]),
        k: floats(k, [length, kvHeads * headDim]),
        v: floats(v, [length, kvHeads * headDim]),
        window: integers(window),
      };
      const { y } = await session.run(feeds, { y: null });
      expect(y!.dims).toEqual([3, heads * headDim]);
      expectClose(
        asNumbers(y),
        [20, 21, 22].flatMap((position) => attended(position, window)),
      );
      const few = { k: floats(k.subarray(0, 32), [2, 16]), v: floats(v.subarray(0, 32), [2, 16]) };
      await expect(session.run({ ...feeds, ...few }, { y: null })).rejects.toThrow("do not fit");
      await expect(session.run({ ...feeds, window: integers(-1) }, { y: null })).rejects.toThrow("window");
      await session.release();
    }
  });

  it("refuses shapes that make no sense", async () => {
    for (const changes of [{ heads: 0 }, { kv_heads: 3 }, { head_dim: -1 }, { block: 2 ** 40 }]) {
      const built = sessionOf((g) => {
        const inputs = ["q", "k", "v"].map((name) => g.input(name, ["n", 32]));
        inputs.push(g.input("window", [1], "int64"));
        return { y: g.add("PlainAttention", inputs, [{ shape: ["n", 32] }], { ...shape, ...changes }, FLYWHEEL)[0]! };
      });
      await expect(built).rejects.toThrow("attention:");
    }
  });
});
