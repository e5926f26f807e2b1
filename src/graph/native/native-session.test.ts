// The native module gives what onnxruntime-node gives, runs our operations, and turns every mistake into an Error.

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { FLYWHEEL, Graph, type Value } from "../graph.ts";
import { emitOnnx } from "../onnx.ts";
import { InferenceSession, Tensor } from "../onnx-runtime.ts";
import * as ops from "../ops.ts";
import { bools, bytes, type Feeds, floats, int64s, type Outputs } from "../session.ts";
import { nativeModule } from "./native-module.ts";
import { NativeSession } from "./native-session.ts";

type Fetches = Record<string, Tensor | null>;

function graphOf(build: (g: Graph) => Record<string, Value>): Graph {
  const g = new Graph();
  for (const [name, value] of Object.entries(build(g))) g.output(name, value);
  return g;
}

const sessionOf = (build: (g: Graph) => Record<string, Value>, threads = 1) =>
  NativeSession.create(emitOnnx(graphOf(build)), { threads });

async function evaluate(build: (g: Graph) => Value, feeds: Feeds, threads = 1): Promise<Tensor> {
  const session = await sessionOf((g) => ({ result: build(g) }), threads);
  try {
    return (await session.run(feeds, { result: null })).result!;
  } finally {
    await session.release();
  }
}

/** Numbers between -1 and 1 that are the same in each run. */
function noise(length: number, seed = 1): Float32Array {
  return Float32Array.from({ length }, (_, i) => Math.sin((i + 1) * 12.9898 * seed));
}

const asNumbers = (tensor: Tensor | undefined) => Array.from(tensor!.data as Float32Array);
const matrix = floats(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);

describe.skipIf(nativeModule === null)("native sessions", () => {
  it("give the same bits as onnxruntime-node", async () => {
    const weights = noise(64 * 96);
    const model = emitOnnx(
      graphOf((g) => {
        const x = g.input("x", ["n", 64]);
        const y = ops.matmul(g, x, g.initializer("w", [64, 96], weights));
        return { soft: ops.softmax(g, ops.tanh(g, y)), rows: ops.gather(g, y, g.input("at", ["m"], "int64")), y };
      }),
    );
    expect(model.external).toHaveLength(1);
    const feeds = { x: floats(noise(5 * 64, 2), [5, 64]), at: int64s(BigInt64Array.of(4n, 0n), [2]) };
    const other = await InferenceSession.create(model.bytes, { externalData: model.external, intraOpNumThreads: 2 });
    const expected = (await other.run(feeds)) as Outputs;
    await other.release();
    const session = await NativeSession.create(model, { threads: 2 });
    expect(session.outputNames).toEqual(["soft", "rows", "y"]);
    const found = await session.run(feeds, { soft: null, rows: null, y: null });
    for (const name of session.outputNames) {
      expect(found[name]!.type).toBe(expected[name]!.type);
      expect(found[name]!.dims).toEqual(expected[name]!.dims);
      expect(found[name]!.data).toEqual(expected[name]!.data);
    }
    await session.release();
  });

  it("carry every type, scalars and empty tensors", async () => {
    const tensors: Feeds = {
      float32: floats(Float32Array.of(1.5, -2), [2]),
      int64: int64s(BigInt64Array.of(-1n, 2n ** 40n), [1, 2]),
      uint8: bytes(Uint8Array.of(255), [1]),
      int8: new Tensor("int8", Int8Array.of(-128), [1, 1, 1]),
      int32: new Tensor("int32", Int32Array.of(-7), []),
      bool: bools(Uint8Array.of(1, 0), [2]),
      empty: floats(new Float32Array(0), [0, 4]),
    };
    const session = await sessionOf((g) =>
      Object.fromEntries(
        Object.entries(tensors).map(([name, { type, dims }]) => [`${name}_out`, g.input(name, dims, type as "int8")]),
      ),
    );
    const fetches: Fetches = Object.fromEntries(session.outputNames.map((name) => [name, null]));
    const found = await session.run(tensors, fetches);
    for (const [name, { type, dims, data }] of Object.entries(tensors)) {
      const { type: foundType, dims: foundDims, data: foundData } = found[`${name}_out`]!;
      expect({ type: foundType, dims: foundDims, data: foundData }).toEqual({ type, dims, data });
    }
    await session.release();
  });

  it("read parts of buffers, write to given memory, and return only what is wanted", async () => {
    const session = await sessionOf((g) => {
      const x = g.input("x", ["n", 3]);
      return { twice: ops.add(g, x, x), square: ops.mul(g, x, x) };
    });
    const shared = new Float32Array(new SharedArrayBuffer(40)).subarray(2, 8);
    shared.set(matrix.data as Float32Array);
    const memory = new Float32Array(8).fill(-1);
    const into = floats(memory.subarray(1, 7), [2, 3]);
    const found = await session.run({ x: floats(shared, [2, 3]) }, { square: into });
    expect(found).toEqual({ square: into });
    expect([...memory]).toEqual([-1, 1, 4, 9, 16, 25, 36, -1]);
    await session.release();
  });

  it("turn mistakes into errors and go on", async () => {
    const session = await sessionOf((g) => ({ y: ops.exp(g, g.input("x", ["n", 3])) }));
    const y: Fetches = { y: null };
    await expect(session.run({}, y)).rejects.toThrow('"x" is missing');
    await expect(session.run({ x: matrix, z: matrix }, y)).rejects.toThrow('no "z"');
    await expect(session.run({ x: matrix }, { z: null })).rejects.toThrow('no "z"');
    await expect(session.run({ x: floats(noise(4), [1, 4]) }, y)).rejects.toThrow("Got: 4 Expected: 3");
    await expect(session.run({ x: int64s(BigInt64Array.of(1n, 2n, 3n), [1, 3]) }, y)).rejects.toThrow("int64");
    await expect(session.run({ x: matrix }, { y: floats(noise(3), [1, 3]) })).rejects.toThrow();
    await expect(session.run({ x: { ...matrix, dims: [9, 3] } as Tensor }, y)).rejects.toThrow();
    const deep = floats(noise(1), new Array(9).fill(1));
    await expect(session.run({ x: deep }, y)).rejects.toThrow("more than 8 dimensions");
    expect((await session.run({ x: matrix }, y)).y!.dims).toEqual([2, 3]);
    await session.release();
    await session.release();
    await expect(session.run({ x: matrix }, y)).rejects.toThrow("closed");
  });

  it("refuse models and settings that are wrong", async () => {
    const model = emitOnnx(graphOf((g) => ({ y: ops.exp(g, g.input("x", [3])) })));
    await expect(NativeSession.create({ bytes: new Uint8Array(100), external: [] }, { threads: 1 })).rejects.toThrow();
    await expect(NativeSession.create(model, { threads: 0 })).rejects.toThrow("threads");
    await expect(NativeSession.create(model, { threads: 1, config: { "": "" } })).rejects.toThrow();
    const weights = nativeModule!.packInt8(Int8Array.of(1), Float32Array.of(1), null, 1, 1);
    await expect(NativeSession.create(model, { threads: 0, packed: [weights] })).rejects.toThrow();
    expect(() => nativeModule!.releaseInt8(weights)).toThrow("no weights");
  });

  it("do not grow over many runs", async () => {
    const session = await sessionOf((g) => ({ y: ops.exp(g, g.input("x", ["n", 1000])) }));
    const feeds = { x: floats(noise(1000), [1, 1000]) };
    const runMany = async (count: number) => {
      for (let i = 0; i < count; i++) await session.run(feeds, { y: null });
      return process.memoryUsage().rss;
    };
    const before = await runMany(10_000);
    // The results of these are 80 MB.
    expect((await runMany(20_000)) - before).toBeLessThan(40e6);
    await session.release();
  });

  it("run in several threads of the process", async () => {
    const model = emitOnnx(graphOf((g) => ({ y: ops.exp(g, g.input("x", [3])) })));
    const require = createRequire(import.meta.url);
    const [file] = Object.keys(require.cache).filter((path) => path.endsWith("flywheel.node"));
    const results = [1, 2, 3].map(
      (threads) =>
        new Promise((resolve, reject) => {
          const worker = new Worker(WORKER, { eval: true, workerData: { file, model: model.bytes, threads } });
          worker.once("message", resolve).once("error", reject);
        }),
    );
    const expected = [...Float32Array.of(1, 2, 3).map(Math.exp)];
    for (const result of await Promise.all(results)) {
      for (const [i, value] of (result as number[]).entries()) expect(value).toBeCloseTo(expected[i]!, 4);
    }
  });
});

/** Leaves its session and weights to the end of the thread. */
const WORKER = `
  const { parentPort, workerData: { file, model, threads } } = require("node:worker_threads");
  const native = require(file);
  const session = native.createSession(model, threads, [], [], []);
  native.packInt8(new Int8Array(64), new Float32Array(8), null, 8, 8);
  const layout = new Float64Array(20);
  const arrays = [Float32Array.of(1, 2, 3), null];
  for (let i = 0; i < 1000; i++) {
    layout.set([1, 1, 3]);
    layout[10] = -1;
    native.run(session, layout, arrays);
  }
  parentPort.postMessage([...new Float32Array(arrays[1])]);
`;

describe.skipIf(nativeModule === null)("Int8Linear", () => {
  const inputs = 48;
  const outputs = 32;
  const values = Int8Array.from(noise(inputs * outputs), (x) => Math.round(127 * x));
  const scales = noise(outputs, 3).map((x) => 0.01 + Math.abs(x) / 100);
  const bias = noise(outputs, 4);
  const linear = (g: Graph, x: Value, weights: number) =>
    g.add("Int8Linear", [x], [{ shape: [...x.shape.slice(0, -1), outputs] }], { weights }, FLYWHEEL)[0]!;

  it("multiplies with packed weights, in branches too, with any number of threads", async () => {
    const x = noise(7 * inputs, 5);
    const expected = Array.from({ length: 7 * outputs }, (_, at) => {
      const [row, column] = [Math.floor(at / outputs), at % outputs];
      let sum = 0;
      for (let i = 0; i < inputs; i++) sum += x[row * inputs + i]! * values[i * outputs + column]!;
      return sum * scales[column]! + bias[column]!;
    });
    const found: number[][] = [];
    for (const threads of [1, 2, 3]) {
      const weights = nativeModule!.packInt8(values, scales, bias, inputs, outputs);
      const model = emitOnnx(
        graphOf((g) => {
          const rows = g.input("x", ["n", inputs]);
          const [chosen] = ops.choose(g, g.input("which", [], "bool"), [["n", outputs]], {
            yes: (sub) => [linear(sub, rows, weights)],
            no: (sub) => [ops.add(sub, linear(sub, rows, weights), linear(sub, rows, weights))],
          });
          return { y: linear(g, rows, weights), chosen: ops.exp(g, chosen!) };
        }),
      );
      const session = await NativeSession.create(model, { threads, packed: [weights] });
      for (const which of [0, 1]) {
        const feeds = { x: floats(x, [7, inputs]), which: bools(Uint8Array.of(which), []) };
        const { y, chosen } = await session.run(feeds, { y: null, chosen: null });
        expect(y!.dims).toEqual([7, outputs]);
        found.push(asNumbers(y));
        for (const [i, value] of asNumbers(chosen).entries()) {
          expect(Math.log(value)).toBeCloseTo(expected[i]! * (which ? 1 : 2), 1);
        }
      }
      await session.release();
    }
    for (const y of found) {
      expect(y).toEqual(found[0]);
      for (const [i, value] of y.entries()) expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-3);
    }
  });

  it("refuses unknown weights and rows of another length", async () => {
    await expect(evaluate((g) => linear(g, g.input("x", ["n", inputs]), 12345), {})).rejects.toThrow("no weights");
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const run = (columns: number, rows: number) =>
      evaluate((g) => linear(g, g.input("x", ["n", columns]), weights), {
        x: floats(noise(rows * columns), [rows, columns]),
      });
    await expect(run(inputs - 1, 2)).rejects.toThrow("last dimension");
    expect((await run(inputs, 0)).dims).toEqual([0, outputs]);
    nativeModule!.releaseInt8(weights);
    expect(() => nativeModule!.releaseInt8(weights)).toThrow("no weights");
    expect(() => nativeModule!.packInt8(values, scales, bias, inputs, outputs + 1)).toThrow("length");
    expect(() => nativeModule!.packInt8(values, scales, bias, 0, 0)).toThrow("out of range");
  });

  it("keeps weights while a session uses them", async () => {
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const session = await sessionOf((g) => ({ y: linear(g, g.input("x", ["n", inputs]), weights) }));
    nativeModule!.releaseInt8(weights);
    const { y } = await session.run({ x: floats(noise(inputs), [1, inputs]) }, { y: null });
    expect(asNumbers(y).some((value) => value !== 0)).toBe(true);
    await session.release();
  });
});

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

it.skipIf(nativeModule === null)("is compiled from the sources beside it", async () => {
  const script = new URL("../../../native/build.mjs", import.meta.url).href;
  const { sourcesHash } = (await import(script)) as { sourcesHash(): string };
  expect(nativeModule!.sources).toBe(sourcesHash());
});
