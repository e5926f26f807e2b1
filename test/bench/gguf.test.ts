import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { BLOCK, encode, encodedBytes } from "../../bench/models/ggml-blocks.ts";
import { writeGguf } from "../../bench/models/gguf.ts";
import { interleaveHalves, writeGgufModel } from "../../bench/models/gguf-model.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { eachTensor } from "../../src/model/checkpoint/expected-tensors.ts";
import { widenFloat16 } from "../../src/model/checkpoint/half-floats.ts";
import { inverseFrequencies } from "../../src/model/checkpoint/rope.ts";

const folder = mkdtempSync(join(tmpdir(), "flywheel-gguf-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const block = fc
  .array(fc.float({ min: -4, max: 4, noNaN: true }), { minLength: BLOCK, maxLength: BLOCK })
  .map((values) => Float32Array.from(values));

function scaleOf(bytes: Uint8Array): number {
  const wide = new Float32Array(1);
  widenFloat16(Uint16Array.of(bytes[0]! | (bytes[1]! << 8)), wide, 0);
  return wide[0]!;
}

describe("ggml blocks", () => {
  it("q8_0 preserves every weight within half a step and the scale's rounding", () => {
    fc.assert(
      fc.property(block, (weights) => {
        const bytes = encode("q8_0", weights);
        expect(bytes.length).toBe(34);
        const scale = scaleOf(bytes);
        const levels = new Int8Array(bytes.buffer, bytes.byteOffset + 2, BLOCK);
        const largest = Math.max(...weights.map(Math.abs));
        // float16 keeps 11 bits; below 6e-8 * 127 the scale itself is 0.
        const bound = largest / 127 / 2 + largest / 1024 + 1e-5;
        for (const [i, weight] of weights.entries()) expect(Math.abs(levels[i]! * scale - weight)).toBeLessThan(bound);
      }),
    );
  });

  it("q4_0 preserves every weight within a step", () => {
    fc.assert(
      fc.property(block, (weights) => {
        const bytes = encode("q4_0", weights);
        expect(bytes.length).toBe(18);
        const scale = scaleOf(bytes);
        const largest = Math.max(...weights.map(Math.abs));
        for (const [i, weight] of weights.entries()) {
          const byte = bytes[2 + (i % 16)]!;
          const level = i < 16 ? byte & 15 : byte >> 4;
          expect(Math.abs((level - 8) * scale - weight)).toBeLessThan(largest / 8 + largest / 512 + 1e-5);
        }
      }),
    );
  });
});

/** A minimal reader for the files we write. */
function readGguf(path: string) {
  const file = readFileSync(path);
  let at = 0;
  const take = (bytes: number) => {
    at += bytes;
    return file.subarray(at - bytes, at);
  };
  const uint32 = () => take(4).readUInt32LE();
  const uint64 = () => Number(take(8).readBigUInt64LE());
  const text = () => take(uint64()).toString();
  const value = (type: number): unknown => {
    if (type === 4) return uint32();
    if (type === 5) return take(4).readInt32LE();
    if (type === 6) return take(4).readFloatLE();
    if (type === 8) return text();
    const element = uint32();
    return Array.from({ length: uint64() }, () => value(element));
  };
  expect(take(4).toString()).toBe("GGUF");
  expect(uint32()).toBe(3);
  const [tensorCount, valueCount] = [uint64(), uint64()];
  const metadata = Object.fromEntries(Array.from({ length: valueCount }, () => [text(), value(uint32())]));
  const tensors = Array.from({ length: tensorCount }, () => ({
    name: text(),
    dims: Array.from({ length: uint32() }, uint64),
    type: uint32(),
    offset: uint64(),
  }));
  const data = Math.ceil(at / 32) * 32;
  return {
    metadata,
    tensors,
    size: file.length,
    bytes: (offset: number, n: number) => file.subarray(data + offset, data + offset + n),
  };
}

describe("GGUF files", () => {
  it("hold metadata and aligned tensors with the innermost dimension first", () => {
    const path = join(folder, "small.gguf");
    const weights = Float32Array.from({ length: 6 }, (_, i) => i);
    writeGguf(
      path,
      {
        "a.b": { type: "uint32", value: 7 },
        names: { type: "strings", value: ["x", "yz"] },
        f: { type: "float32", value: 0.5 },
      },
      [
        { name: "first", shape: [3], type: "f32", read: () => weights.slice(0, 3) },
        { name: "second", shape: [2, 3], type: "f16", read: () => weights },
      ],
    );
    const { metadata, tensors, bytes, size } = readGguf(path);
    expect(metadata).toEqual({ "a.b": 7, names: ["x", "yz"], f: 0.5 });
    expect(tensors).toEqual([
      { name: "first", dims: [3], type: 0, offset: 0 },
      { name: "second", dims: [3, 2], type: 1, offset: 32 },
    ]);
    expect([...new Uint16Array(Uint8Array.from(bytes(32, 12)).buffer)]).toEqual([
      0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500,
    ]);
    expect(size % 32).toBe(0);
  });

  it.each(["llama", "qwen2", "qwen3"])("contain every weight of a %s checkpoint", (family) => {
    const path = join(folder, `${family}.gguf`);
    const checkpoint = openCheckpoint(join("test/fixtures", family));
    writeGgufModel(checkpoint, path, "f32");
    const { metadata, tensors, size, bytes } = readGguf(path);
    expect(metadata["general.architecture"]).toBe(family);
    expect(metadata[`${family}.block_count`]).toBe(checkpoint.config.numLayers);
    const elements = tensors.reduce((sum, { dims }) => sum + dims.reduce((a, b) => a * b, 1), 0);
    const stored = [...eachTensor(checkpoint.tensors)].reduce(
      (sum, { name }) => sum + checkpoint.tensor(name).elements,
      0,
    );
    expect(elements).toBe(stored);
    const last = tensors.at(-1)!;
    expect(size).toBeGreaterThanOrEqual(
      last.offset +
        encodedBytes(
          "f32",
          last.dims.reduce((a, b) => a * b, 1),
        ),
    );
    const up = tensors.find(({ name }) => name === "blk.0.ffn_up.weight")!;
    const original = checkpoint.tensor(checkpoint.tensors.layers[0]!.linears.up!.weight.name).read();
    const written = Uint8Array.from(bytes(up.offset, original.byteLength));
    expect(new Float32Array(written.buffer)).toEqual(original);
    checkpoint.close();
  });

  it.each([
    ["mistral", /of mistral models have no windows/],
    ["qwen3-moe", /of qwen3_moe models have experts in every layer/],
  ])("are refused for what they cannot state: %s", (family, message) => {
    const checkpoint = openCheckpoint(join("test/fixtures", family));
    expect(() => writeGgufModel(checkpoint, join(folder, "none.gguf"), "f32")).toThrow(message);
    checkpoint.close();
  });
});

describe("interleaveHalves", () => {
  it("makes rotating neighbours equal to rotating halves", () => {
    const headDim = 8;
    const frequencies = inverseFrequencies({ theta: 100, scaling: null, attentionFactor: 1 }, headDim);
    const rotate = (x: number[], position: number, pair: (j: number) => [number, number]): number[] => {
      const y = [...x];
      for (const [j, frequency] of frequencies.entries()) {
        const [a, b] = pair(j);
        const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
        y[a] = x[a]! * cos - x[b]! * sin;
        y[b] = x[a]! * sin + x[b]! * cos;
      }
      return y;
    };
    const vector = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: headDim, maxLength: headDim });
    const product = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    const reorder = (x: number[]) => [...interleaveHalves(Float32Array.from(x), headDim, headDim)];
    fc.assert(
      fc.property(vector, vector, fc.nat(50), fc.nat(50), (q, k, m, n) => {
        const halves = (x: number[], at: number) => rotate([...Float32Array.from(x)], at, (j) => [j, j + headDim / 2]);
        const neighbours = (x: number[], at: number) => rotate(reorder(x), at, (j) => [2 * j, 2 * j + 1]);
        expect(product(neighbours(q, m), neighbours(k, n))).toBeCloseTo(product(halves(q, m), halves(k, n)), 10);
      }),
    );
  });
});
