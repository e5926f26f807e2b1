import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needing, POSIX } from "../../../test/support/needs.ts";
import { CheckpointError } from "./checkpoint-file.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { writeSafetensors } from "./safetensors-writer.ts";

let folder: string;
let counter = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "safetensors-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(bytes: Uint8Array): string {
  const path = join(folder, `${counter++}.safetensors`);
  writeFileSync(path, bytes);
  return path;
}

/** A file with any JSON text as header. */
function withHeader(header: string, dataBytes: number, claimed?: bigint): Uint8Array {
  const json = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, claimed ?? BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

function tensor(begin: number, end: number, shape: unknown = [end - begin], dtype: unknown = "U8"): object {
  return { dtype, shape, data_offsets: [begin, end] };
}

describe("writing and reading", () => {
  test("values, shapes and metadata come back", () => {
    const path = join(folder, "roundtrip.safetensors");
    const values = Float32Array.of(1.5, -2, 0.25, 65504, -0, 3);
    writeSafetensors(
      path,
      [
        { name: "half", shape: [2, 3], values, dtype: "F16" },
        { name: "brain", shape: [6], values, dtype: "BF16" },
        { name: "single", shape: [3, 1, 2], values, dtype: "F32" },
        { name: "scalar", shape: [], values: Float32Array.of(7), dtype: "F32" },
        { name: "empty", shape: [0, 4], values: new Float32Array(0), dtype: "F32" },
      ],
      { format: "pt" },
    );
    const file = SafetensorsFile.open(path);
    expect(file.metadata).toEqual({ format: "pt" });
    expect([...file.tensors.keys()]).toEqual(["empty", "scalar", "single", "brain", "half"]);
    expect(file.entry("single")).toMatchObject({ dtype: "F32", shape: [3, 1, 2], elements: 6, byteLength: 24 });
    expect(file.read("single")).toEqual(values);
    expect(file.read("half")).toEqual(values);
    expect([...file.read("brain")]).toEqual([1.5, -2, 0.25, 65536, -0, 3]);
    expect([...file.read("scalar")]).toEqual([7]);
    expect(file.read("empty").length).toBe(0);
    expect(file.readBytes("scalar")).toEqual(new Uint8Array(Float32Array.of(7).buffer));
    file.close();
    file.close();
    expect(() => file.read("single")).toThrow(/is closed/);
  });

  test("tensors longer than one conversion piece are whole", () => {
    const path = join(folder, "long.safetensors");
    const values = Float32Array.from({ length: 300_001 }, (_, i) => (i % 2048) - 1024);
    writeSafetensors(path, [{ name: "x", shape: [300_001], values, dtype: "F16" }]);
    const file = SafetensorsFile.open(path);
    expect(Buffer.from(file.read("x").buffer).equals(Buffer.from(values.buffer))).toBe(true);
    file.close();
  });

  test("the same tensors give the same bytes as the reference implementation wrote", () => {
    const original = "test/fixtures/llama/adapter_model.safetensors";
    const file = SafetensorsFile.open(original);
    const tensors = [...file.tensors.values()].reverse().map((entry) => {
      return { name: entry.name, shape: entry.shape, values: file.read(entry.name), dtype: "F32" as const };
    });
    const copy = join(folder, "copy.safetensors");
    writeSafetensors(copy, tensors, file.metadata);
    expect(readFileSync(copy).equals(readFileSync(original))).toBe(true);
    file.close();
  });

  test("replaces an existing file and leaves nothing beside it", () => {
    const path = join(folder, "replaced.safetensors");
    for (const value of [1, 2]) {
      writeSafetensors(path, [{ name: "x", shape: [1], values: Float32Array.of(value), dtype: "F32" }]);
    }
    const file = SafetensorsFile.open(path);
    expect([...file.read("x")]).toEqual([2]);
    file.close();
  });

  test("refuses tensors whose length contradicts the shape, and duplicate names", () => {
    const good = { name: "x", shape: [2], values: new Float32Array(2), dtype: "F32" as const };
    const path = join(folder, "refused.safetensors");
    expect(() => writeSafetensors(path, [{ ...good, shape: [3] }])).toThrow(/"x"/);
    expect(() => writeSafetensors(path, [good, good])).toThrow(/duplicate/);
  });

  test("reads float tensors only as floats, everything as bytes", () => {
    const file = SafetensorsFile.open(fileOf(withHeader(JSON.stringify({ ids: tensor(0, 16, [2], "I64") }), 16)));
    expect(file.readBytes("ids").length).toBe(16);
    expect(() => file.read("ids")).toThrow(/"ids" has dtype I64, expected F32, F16 or BF16/);
    expect(() => file.read("other")).toThrow(/has no tensor "other"/);
    file.close();
  });

  test.each([
    ["F32", Number.NaN],
    ["F16", Number.POSITIVE_INFINITY],
    ["BF16", Number.NEGATIVE_INFINITY],
  ] as const)("%s with the value %d names the tensor and the place", (dtype, bad) => {
    const path = join(folder, `bad-${dtype}.safetensors`);
    writeSafetensors(path, [{ name: "w", shape: [5], dtype, values: Float32Array.of(1, 2, 3, bad, 5) }]);
    const file = SafetensorsFile.open(path);
    expect(() => file.read("w")).toThrow(`${path}: tensor "w" has the value ${bad} at 3`);
    expect(() => file.readPart("w", 2, new Float32Array(2))).toThrow(`has the value ${bad} at 3`);
    file.readPart("w", 0, new Float32Array(3));
    file.close();
  });

  needing(POSIX).it("a pipe in place of a file is refused, not waited for", () => {
    const path = join(folder, "pipe.safetensors");
    execFileSync("mkfifo", [path]);
    expect(() => SafetensorsFile.open(path)).toThrow(`${path}: not a regular file`);
  });

  test("a file that shrinks after opening is an error, not garbage", () => {
    const path = fileOf(withHeader(JSON.stringify({ x: tensor(0, 8, [2], "F32") }), 8));
    const file = SafetensorsFile.open(path);
    truncateSync(path, 60);
    expect(() => file.read("x")).toThrow(CheckpointError);
    file.close();
  });
});

describe("files that must be refused", () => {
  const deep = "[".repeat(10_000) + "]".repeat(10_000);
  test.each<[string, Uint8Array, RegExp]>([
    ["nothing", new Uint8Array(0), /0 bytes are not a safetensors file/],
    ["seven bytes", new Uint8Array(7), /7 bytes/],
    ["a header longer than the file", withHeader("{}", 0, 3n), /claims a header of 3 bytes, at most 2 are possible/],
    ["a header of 2^63 bytes", withHeader("{}", 0, 1n << 63n), /claims a header of 9223372036854775808/],
    ["no JSON", withHeader("{oops", 0), /not valid JSON/],
    ["bytes that are not UTF-8", withHeader("", 0).fill(0xff, 8), /not valid JSON/],
    ["a list as header", withHeader("[]", 0), /expected a JSON object/],
    ["10,000 levels of JSON", withHeader(`{"x":${deep}}`, 0), /nested deeper/],
    [
      "a Git LFS pointer",
      new TextEncoder().encode("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"),
      /is a Git LFS pointer, not the file/,
    ],
    ["a tensor that is a number", withHeader('{"x":3}', 0), /"x" is not described by an object/],
    ["an unknown dtype", withHeader(JSON.stringify({ x: tensor(0, 4, [4], "F4") }), 4), /unknown dtype "F4"/],
    ["an inherited dtype", withHeader(JSON.stringify({ x: tensor(0, 4, [4], "toString") }), 4), /unknown dtype/],
    ["a missing dtype", withHeader('{"x":{"shape":[1],"data_offsets":[0,1]}}', 1), /unknown dtype/],
    ["a negative size", withHeader(JSON.stringify({ x: tensor(0, 4, [-4]) }), 4), /shape that is not a list/],
    ["a fractional size", withHeader(JSON.stringify({ x: tensor(0, 4, [1.5]) }), 4), /shape that is not a list/],
    ["a nested shape", withHeader(JSON.stringify({ x: tensor(0, 4, [[4]]) }), 4), /shape that is not a list/],
    ["sizes beyond counting", withHeader(JSON.stringify({ x: tensor(0, 4, [2 ** 40, 2 ** 40]) }), 4), /needs/],
    ["a size that contradicts the bytes", withHeader(JSON.stringify({ x: tensor(0, 4, [5]) }), 4), /needs 5 bytes/],
    ["offsets in reverse", withHeader(JSON.stringify({ x: tensor(4, 0, [4]) }), 4), /give -4/],
    ["three offsets", withHeader('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}', 1), /not two positions/],
    ["overlap", withHeader(JSON.stringify({ a: tensor(0, 4), b: tensor(2, 6) }), 6), /"b" overlaps/],
    ["the same bytes twice", withHeader(JSON.stringify({ a: tensor(0, 4), b: tensor(0, 4) }), 4), /overlaps/],
    [
      "a name twice, every byte taken",
      withHeader(
        `{"a":${JSON.stringify(tensor(0, 4))},"b":${JSON.stringify(tensor(4, 8))},"\\u0061":${JSON.stringify(tensor(0, 4))}}`,
        8,
      ),
      /tensor "a" is described twice/,
    ],
    ["a gap", withHeader(JSON.stringify({ a: tensor(0, 4), b: tensor(6, 8) }), 8), /"b" leaves a gap/],
    ["a cut end", withHeader(JSON.stringify({ a: tensor(0, 8) }), 5), /holds 5 bytes of data.*truncated/],
    ["bytes after the end", withHeader(JSON.stringify({ a: tensor(0, 8) }), 9), /belong to no tensor/],
    ["metadata that is not text", withHeader('{"__metadata__":{"a":1}}', 0), /__metadata__/],
  ])("%s", (_, bytes, message) => {
    const path = fileOf(bytes);
    expect(() => SafetensorsFile.open(path)).toThrow(message);
    expect(() => SafetensorsFile.open(path)).toThrow(CheckpointError);
    expect(() => SafetensorsFile.open(path)).toThrow(path);
  });

  test("a folder, and a file that is not there", () => {
    expect(() => SafetensorsFile.open(folder)).toThrow(CheckpointError);
    expect(() => SafetensorsFile.open(join(folder, "nowhere"))).toThrow(/nowhere: cannot be opened/);
  });

  test("a name that looks like an object's innards is just a name", () => {
    const file = SafetensorsFile.open(
      fileOf(withHeader('{"__proto__":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', 2)),
    );
    expect([...file.tensors.keys()]).toEqual(["__proto__"]);
    file.close();
  });
});

describe("damaged copies of a real file", () => {
  const original = readFileSync("test/fixtures/llama/adapter_model.safetensors");
  const headerEnd = 8 + Number(original.readBigUInt64LE(0));

  /** Opens and reads everything: either it works or it is a CheckpointError, and it stays small. */
  function survives(bytes: Uint8Array): boolean {
    const path = join(folder, "damaged.safetensors");
    writeFileSync(path, bytes);
    let file: SafetensorsFile | undefined;
    try {
      file = SafetensorsFile.open(path);
      for (const entry of file.tensors.values()) expect(file.readBytes(entry.name).length).toBe(entry.byteLength);
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(CheckpointError);
      return false;
    } finally {
      file?.close();
    }
  }

  test("cut anywhere: always refused", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: original.length - 1 }), (length) => {
        expect(survives(original.subarray(0, length))).toBe(false);
      }),
    );
  });

  test("any bit of the header flipped, any byte overwritten: never a crash", () => {
    const flip = fc.record({ at: fc.integer({ min: 0, max: headerEnd - 1 }), with: fc.integer({ min: 1, max: 255 }) });
    fc.assert(
      fc.property(fc.array(flip, { minLength: 1, maxLength: 4 }), (flips) => {
        const damaged = Uint8Array.from(original);
        for (const { at, with: mask } of flips) damaged[at]! ^= mask;
        survives(damaged);
      }),
      { numRuns: 400 },
    );
  });

  test("any JSON as header: never a crash", () => {
    const entry = fc.record(
      {
        dtype: fc.oneof(fc.constantFrom("F32", "BF16", "U8", "f32", "__proto__"), fc.jsonValue()),
        shape: fc.oneof(fc.array(fc.integer({ min: -1, max: 9 })), fc.jsonValue()),
        data_offsets: fc.oneof(fc.tuple(fc.nat(40), fc.nat(40)), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    const header = fc.dictionary(fc.string(), fc.oneof(entry, fc.jsonValue()));
    fc.assert(
      fc.property(header, fc.nat(64), (json, dataBytes) => {
        survives(withHeader(JSON.stringify(json), dataBytes));
      }),
      { numRuns: 400 },
    );
  });
});
