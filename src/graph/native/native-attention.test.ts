// PagedAttention, PlainAttention, Rotate and RoundToHalf, operations of the native module, in graphs.

import { expect, it } from "vitest";
import { asNumbers, noise, sessionOf } from "../../../test/native/graphs.ts";
import { halfOfBits, nearestHalf } from "../../../test/native/halves.ts";
import { need, needing } from "../../../test/support/needs.ts";
import { type DType, FLYWHEEL, type Graph, type Value } from "../graph.ts";
import type { Tensor } from "../onnx-runtime.ts";
import * as ops from "../ops.ts";
import { bools, type Feeds, floats, halves, int64s } from "../session.ts";
import { nativeModule } from "./native-module.ts";

needing(need("the native module", nativeModule !== null)).describe("attention", () => {
  const [heads, kvHeads, headDim, block] = [4, 2, 8, 4];
  const shape = { heads, kv_heads: kvHeads, head_dim: headDim, block, scale: { float: 0.3 }, softcap: { float: 0 } };
  const blockFloats = 2 * kvHeads * headDim * block;
  const length = 23;
  const q = noise(length * heads * headDim, 2);
  const k = noise(length * kvHeads * headDim, 3);
  const v = noise(length * kvHeads * headDim, 5);
  /** Rotated are 6 of a head's numbers. */
  const half = 3;
  const angles = noise(length * half, 7);
  const cos = angles.map(Math.cos);
  const sin = angles.map(Math.sin);

  /** Rows of `of` heads each, rotated. */
  function turned(x: Float32Array, of: number): Float32Array {
    const result = x.slice();
    for (let at = 0; at < x.length; at += headDim) {
      const row = Math.floor(at / headDim / of);
      for (let i = 0; i < half; i++) {
        const [first, second] = [x[at + i]!, x[at + half + i]!];
        const [c, s] = [cos[row * half + i]!, sin[row * half + i]!];
        result[at + i] = first * c - second * s;
        result[at + half + i] = second * c + first * s;
      }
    }
    return result;
  }

  /** Tensors side by side in each row. */
  function joined(...parts: [Float32Array, number][]): Float32Array {
    const rows = Array.from({ length }, (_, row) =>
      parts.flatMap(([data, of]) => [...data.subarray(row * of * headDim, (row + 1) * of * headDim)]),
    );
    return Float32Array.from(rows.flat());
  }
  const allHeads = heads + 2 * kvHeads;
  const qkv = joined([q, heads], [k, kvHeads], [v, kvHeads]);

  /** The attention of one position, summed in double precision. */
  function attended(position: number, window: number, [q, k]: [Float32Array, Float32Array]): number[] {
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

  interface Options {
    rotated?: boolean;
    wanted?: Value;
    /** Queries and keys, if they are not beside the values. */
    qk?: Value;
    cacheType?: DType;
  }

  function paged(g: Graph, at: Graph, window: number, { rotated, wanted, qk, cacheType }: Options): Value {
    const all = g.input("qkv", ["n", "all", 1, headDim]);
    const inputs = [
      qk ?? all,
      all,
      ...(rotated ? [g.input("cos", ["n", "half"]), g.input("sin", ["n", "half"])] : [null, null]),
      g.input("cache", ["places", blockFloats], cacheType),
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
  const anglesOf = (from: number, to: number): Feeds => ({
    cos: floats(cos.subarray(from * half, to * half), [to - from, half]),
    sin: floats(sin.subarray(from * half, to * half), [to - from, half]),
  });
  const feedsFor = (from: number, to: number, memory: Tensor): Feeds => ({
    qkv: rowsOf(qkv, allHeads, from, to),
    cache: memory,
    spans: spansOf([0, to - from, from, 1]),
    blocks: integers(1, ...sixBlocks),
  });

  it("reads and writes a cache in blocks, in a branch too, however a prompt is cut", async () => {
    for (const window of [0, 6]) {
      const expected = Array.from({ length }, (_, i) => attended(i, window, [q, k])).flat();
      const found: number[][] = [];
      for (const [threads, step] of [
        [1, length],
        [2, 5],
        [1, 1],
      ] as const) {
        const session = await sessionOf((g) => {
          const out = [["w", 1, heads * headDim]];
          const [first] = ops.choose(g, g.input("yes", [], "bool"), out, {
            yes: (sub) => [paged(g, sub, window, {})],
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
    const session = await sessionOf((g) => ({ y: paged(g, g, 0, { wanted: g.input("wanted", ["w"], "int64") }) }));
    // Two sequences with the same content, and two rows of none.
    const feeds: Feeds = {
      qkv: rowsOf(qkv, allHeads, 0, 10),
      cache: cache(4),
      spans: spansOf([0, 5, 0, 0], [5, 0, 0, 0], [5, 3, 0, 2]),
      blocks: integers(3, 1, 0),
      wanted: integers(9, 4, 0, 5),
    };
    const { y } = await session.run(feeds, { y: null });
    const width = heads * headDim;
    expect(y!.dims).toEqual([4, 1, width]);
    expect(asNumbers(y).slice(0, width)).toEqual(new Array(width).fill(0));
    expectClose(asNumbers(y).slice(width, 3 * width), [...attended(4, 0, [q, k]), ...attended(0, 0, [q, k])]);
    // A sequence of one position is its value.
    expectClose(asNumbers(y).slice(3 * width, 3 * width + headDim), [...v.subarray(5 * 16, 5 * 16 + headDim)]);
    const none = await session.run({ ...feeds, wanted: integers() }, { y: null });
    expect(none.y!.dims).toEqual([0, 1, width]);
    await session.release();
  });

  it("rotates queries and keys in passing, with the bits of Rotate", async () => {
    const expected = Array.from({ length }, (_, i) => attended(i, 0, [turned(q, heads), turned(k, kvHeads)])).flat();
    const session = await sessionOf((g) => ({ y: paged(g, g, 0, { rotated: true }) }), 2);
    const feeds = { ...feedsFor(0, length, cache(8)), ...anglesOf(0, length) };
    const { y } = await session.run(feeds, { y: null });
    expectClose(asNumbers(y), expected);
    const step = await session.run({ ...feedsFor(22, 23, feeds.cache!), ...anglesOf(22, 23) }, { y: null });
    expect(asNumbers(step.y)).toEqual(asNumbers(y).slice(22 * heads * headDim));
    const empty = await session.run({ ...feeds, ...feedsFor(0, 0, cache(8)), ...anglesOf(0, 0) }, { y: null });
    expect(empty.y!.dims).toEqual([0, 1, heads * headDim]);
    await session.release();

    const apart = await sessionOf((g) => {
      const joint = g.input("qk", ["n", heads + kvHeads, 1, headDim]);
      const rotation = [joint, g.input("cos", ["n", half]), g.input("sin", ["n", half])];
      const qk = g.add("Rotate", rotation, [{ shape: joint.shape }], {}, FLYWHEEL)[0]!;
      return { y: paged(g, g, 0, { qk }), rotated: qk };
    });
    const qk = joined([q, heads], [k, kvHeads]);
    const apartFeeds = { ...feeds, qk: rowsOf(qk, heads + kvHeads, 0, length) };
    const results = await apart.run(apartFeeds, { y: null, rotated: null });
    expect(asNumbers(results.y)).toEqual(asNumbers(y));
    expectClose(asNumbers(results.rotated), [...turned(qk, heads + kvHeads)]);
    await apart.release();
  });

  it("gives over a cache of float16 the bits of a float32 cache with the rounded numbers", async () => {
    const loud = v.map((x, i) => (i % 41 === 3 ? x * 1e6 : x));
    const rounded = joined([q, heads], [k.map(nearestHalf), kvHeads], [loud.map(nearestHalf), kvHeads]);
    const given = joined([q, heads], [k, kvHeads], [loud, kvHeads]);
    for (const window of [0, 6]) {
      const wide = await sessionOf((g) => ({ y: paged(g, g, window, {}) }));
      const memory = cache(8);
      const feeds = { ...feedsFor(0, length, memory), qkv: rowsOf(rounded, allHeads, 0, length) };
      const expected = asNumbers((await wide.run(feeds, { y: null })).y);
      await wide.release();
      for (const [threads, step] of [
        [1, length],
        [2, 5],
        [1, 1],
      ] as const) {
        const session = await sessionOf((g) => ({ y: paged(g, g, window, { cacheType: "float16" }) }), threads);
        const bits = new Uint16Array(8 * blockFloats);
        const narrow = halves(bits, [8, blockFloats]);
        const found: number[] = [];
        for (let from = 0; from < length; from += step) {
          const to = Math.min(length, from + step);
          const part = { ...feedsFor(from, to, narrow), qkv: rowsOf(given, allHeads, from, to) };
          found.push(...asNumbers((await session.run(part, { y: null })).y));
        }
        expect(found).toEqual(expected);
        expect(Array.from(bits, halfOfBits)).toEqual(asNumbers(memory));
        await session.release();
      }
    }
  });

  it.each(["float16", "float32"] as const)(
    "keeps NaN in a cache of %s, and from the tokens before it",
    async (cacheType) => {
      const session = await sessionOf((g) => ({ y: paged(g, g, 0, { cacheType }) }));
      const lastOfRow = (row: number) => (row + 1) * allHeads * headDim - 1;
      for (let at = 3; at < 9; at++) {
        const broken = qkv.slice();
        broken[lastOfRow(at)] = Number.NaN;
        const size = 8 * blockFloats;
        const memory =
          cacheType === "float16"
            ? halves(new Uint16Array(size), [8, blockFloats])
            : floats(new Float32Array(size), [8, blockFloats]);
        const feeds = { ...feedsFor(0, length, memory), qkv: rowsOf(broken, allHeads, 0, length) };
        const y = asNumbers((await session.run(feeds, { y: null })).y);
        const nans = Array.from({ length }, (_, row) => Number.isNaN(y[(row + 1) * heads * headDim - 1]));
        expect(nans).toEqual(nans.map((_, row) => row >= at));
      }
      await session.release();
    },
  );

  it("refuses a cache of another type", async () => {
    const session = await sessionOf((g) => ({ y: paged(g, g, 0, { cacheType: "int64" }) }));
    const feeds = feedsFor(0, length, int64s(new BigInt64Array(8 * blockFloats), [8, blockFloats]));
    await expect(session.run(feeds, { y: null })).rejects.toThrow("neither float32 nor float16");
    await session.release();
  });

  it("rounds numbers to float16 with any number of threads", async () => {
    const x = noise(100_003, 3).map((value, i) => value * 2 ** ((i % 50) - 30));
    x.set([Number.NaN, Infinity, -Infinity, 65519, 65520, -1e30, 0, -0, 2 ** -25, -(2 ** -24), 1 + 2 ** -11]);
    for (const threads of [1, 2]) {
      const session = await sessionOf((g) => {
        const input = g.input("x", ["n", "m"]);
        return { y: g.add("RoundToHalf", [input], [{ shape: input.shape }], {}, FLYWHEEL)[0]! };
      }, threads);
      const { y } = await session.run({ x: floats(x, [1, x.length]) }, { y: null });
      expect(y!.dims).toEqual([1, x.length]);
      expect(asNumbers(y)).toEqual(Array.from(x, nearestHalf));
      expect((await session.run({ x: floats(new Float32Array(), [0, 2]) }, { y: null })).y!.dims).toEqual([0, 2]);
      await session.release();
    }
  });

  it("rotates many rows with several threads", async () => {
    const rows = 2000;
    const x = noise(rows * 64, 2);
    const [c, s] = [noise(rows * 16, 3), noise(rows * 16, 5)];
    const found: number[][] = [];
    for (const threads of [1, 2]) {
      const session = await sessionOf((g) => {
        const inputs = [g.input("x", ["n", 2, 1, 32]), g.input("cos", ["n", "h"]), g.input("sin", ["n", "h"])];
        return { y: g.add("Rotate", inputs, [{ shape: ["n", 2, 1, 32] }], {}, FLYWHEEL)[0]! };
      }, threads);
      const feeds = { x: floats(x, [rows, 2, 1, 32]), cos: floats(c, [rows, 16]), sin: floats(s, [rows, 16]) };
      found.push(asNumbers((await session.run(feeds, { y: null })).y));
      const none = { x: floats(new Float32Array(), [0, 2, 1, 32]), cos: floats(new Float32Array(), [0, 16]) };
      expect((await session.run({ ...none, sin: none.cos }, { y: null })).y!.dims).toEqual([0, 2, 1, 32]);
      const run = (changes: Feeds) => session.run({ ...feeds, ...changes }, { y: null });
      await expect(run({ cos: none.cos })).rejects.toThrow("do not fit");
      await expect(run({ sin: floats(s.subarray(0, rows * 8), [rows, 8]) })).rejects.toThrow("do not fit");
      const wide = floats(new Float32Array(rows * 17), [rows, 17]);
      await expect(run({ cos: wide, sin: wide })).rejects.toThrow("do not fit");
      await session.release();
    }
    expect(found[1]).toEqual(found[0]);
  });

  it("refuses rows and blocks that do not exist", async () => {
    const session = await sessionOf((g) => {
      const wanted = g.input("wanted", ["w"], "int64");
      return { y: paged(g, g, 0, { rotated: true, wanted, qk: g.input("qk", ["n", "h"]) }) };
    });
    const qk = (rows: number, width: number) => floats(qkv.subarray(0, rows * width), [rows, width]);
    const good = { ...feedsFor(0, 8, cache(8)), ...anglesOf(0, 8), qk: qk(8, 48), wanted: integers(0) };
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
    await expect(run({ qk: qk(7, 48) })).rejects.toThrow("same rows");
    await expect(run({ qk: qk(8, 47) })).rejects.toThrow("too few heads");
    await expect(run({ qkv: rowsOf(qkv, 1, 0, 8) })).rejects.toThrow("too few heads");
    await expect(run(anglesOf(0, 7))).rejects.toThrow("do not fit");
    await expect(run({ sin: floats(sin.subarray(0, 16), [8, 2]) })).rejects.toThrow("do not fit");
    const wide = floats(new Float32Array(8 * 5), [8, 5]);
    await expect(run({ cos: wide, sin: wide })).rejects.toThrow("do not fit");
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
        [20, 21, 22].flatMap((position) => attended(position, window, [q, k])),
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
