// The native module gives what onnxruntime-node gives, and turns every mistake into an Error.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { asNumbers, graphOf, noise, sessionOf } from "../../../test/native/graphs.ts";
import { LINUX, need, needing } from "../../../test/support/needs.ts";
import { emitOnnx } from "../onnx.ts";
import { InferenceSession, Tensor } from "../onnx-runtime.ts";
import * as ops from "../ops.ts";
import { bools, bytes, type Feeds, floats, int64s, type Outputs } from "../session.ts";
import { nativeModule } from "./native-module.ts";
import { NativeSession } from "./native-session.ts";

type Fetches = Record<string, Tensor | null>;

const matrix = floats(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);

needing(need("the native module", nativeModule !== null)).describe("native sessions", () => {
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

  it("keep inputs for all runs, in place", async () => {
    const session = await sessionOf((g) => {
      const [x, y] = [g.input("x", [2]), g.input("y", [2])];
      return { sum: ops.add(g, x, y) };
    });
    const memory = Float32Array.of(1, 2);
    const sumWith = async (a: number, b: number) => {
      const { sum } = await session.run({ y: floats(Float32Array.of(a, b), [2]) }, { sum: null });
      return asNumbers(sum);
    };
    await expect(sumWith(0, 0)).rejects.toThrow('"x" is missing');
    expect(() => session.keep({ z: floats(memory, [2]) })).toThrow('no "z"');
    session.keep({ x: floats(memory, [2]) });
    expect(await sumWith(10, 20)).toEqual([11, 22]);
    memory[0] = 5;
    expect(await sumWith(1, 1)).toEqual([6, 3]);
    expect(() => session.keep({ x: floats(memory, [2]) })).toThrow('no "x"');
    await expect(session.run({ x: floats(memory, [2]), y: floats(memory, [2]) }, { sum: null })).rejects.toThrow();
    expect(await sumWith(0, 0)).toEqual([5, 2]);
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
    expect(() => nativeModule!.releaseWeights(weights)).toThrow("no weights");
  });

  it("do not grow over many runs", async () => {
    const session = await sessionOf((g) => ({ y: ops.exp(g, g.input("x", ["n", 1000])) }));
    const feeds = { x: floats(noise(1000), [1, 1000]) };
    const runMany = async (count: number) => {
      for (let i = 0; i < count; i++) await session.run(feeds, { y: null });
      return process.memoryUsage().rss;
    };
    const before = await runMany(10_000);
    // The results of these are 240 MB. Some wait for the garbage collector: 41 MB once.
    expect((await runMany(60_000)) - before).toBeLessThan(80e6);
    await session.release();
  });

  it("run in several threads of the process", async () => {
    const model = emitOnnx(graphOf((g) => ({ y: ops.exp(g, g.input("x", [3])) })));
    const require = createRequire(import.meta.url);
    const [file] = Object.keys(require.cache).filter((path) => path.includes("prebuilt"));
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
  const session = native.createSession(model, threads, threads === 3, 50, [], [], []);
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

it("is compiled from the sources beside it, for every kind of processor", async () => {
  const script = new URL("../../../native/build.mjs", import.meta.url).href;
  const { sourcesHash, TARGETS } = (await import(script)) as {
    sourcesHash(): string;
    TARGETS: Record<string, { platform: string }>;
  };
  for (const [kind, { platform }] of Object.entries(TARGETS)) {
    const file = new URL(`../../../native/prebuilt/${platform}/${kind}.node`, import.meta.url);
    expect(readFileSync(file).includes(sourcesHash()), kind).toBe(true);
  }
});

/** How many mappings of this process asked for large pages ("hg" in proc(5), VmFlags). */
const mappingsOfLargePages = () =>
  readFileSync("/proc/self/smaps", "utf8")
    .split("\n")
    .filter((line) => /^VmFlags:.* hg( |$)/.test(line)).length;

needing(need("the native module", nativeModule !== null), LINUX).it(
  "asks for large pages, for memory of any length",
  () => {
    const before = mappingsOfLargePages();
    const long = new Float32Array(4 << 20);
    nativeModule!.useHugePages(long);
    expect(mappingsOfLargePages()).toBeGreaterThan(before);
    for (let i = 0; i < long.length; i += 1024) long[i] = i;
    expect(long[1 << 20]).toBe(1 << 20);
    nativeModule!.useHugePages(new Uint16Array(3));
    nativeModule!.useHugePages(new Uint16Array(0));
    expect(() => nativeModule!.useHugePages([1] as unknown as Float32Array)).toThrow("typed array");
  },
);
