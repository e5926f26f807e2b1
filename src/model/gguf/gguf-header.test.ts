// Headers as an attacker or a bad download makes them: each is refused with one sentence that says what is wrong.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it, test } from "vitest";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { GgufFile } from "./gguf-file.ts";

const folder = mkdtempSync(join(tmpdir(), "gguf-header-"));
afterAll(() => rmSync(folder, { recursive: true }));

const u32 = (value: number) => [...new Uint8Array(Uint32Array.of(value).buffer)];
const u64 = (value: number | bigint) => [...new Uint8Array(BigUint64Array.of(BigInt(value)).buffer)];
const text = (value: string) => [...u64(Buffer.byteLength(value)), ...Buffer.from(value)];
const entry = (key: string, kind: number, ...value: number[]) => [...text(key), ...u32(kind), ...value];

interface Tensor {
  name?: string;
  dims?: (number | bigint)[];
  type?: number;
  offset?: number | bigint;
}
const described = ({ name = "t", dims = [4], type = 0, offset = 0 }: Tensor) => [
  ...text(name),
  ...u32(dims.length),
  ...dims.flatMap(u64),
  ...u32(type),
  ...u64(offset),
];

interface Parts {
  magic?: string;
  version?: number;
  tensorCount?: number | bigint;
  entryCount?: number | bigint;
  entries?: number[][];
  tensors?: Tensor[];
  data?: number;
}

function file({ magic = "GGUF", version = 3, entries = [], tensors = [], data = 16, ...counts }: Parts): Uint8Array {
  const head = [
    ...[...Buffer.from(magic), ...u32(version)],
    ...[...u64(counts.tensorCount ?? tensors.length), ...u64(counts.entryCount ?? entries.length)],
    ...[...entries.flat(), ...tensors.flatMap(described)],
  ];
  const padded = Math.ceil(head.length / 32) * 32;
  return Uint8Array.from([...head, ...Array(padded - head.length + data).fill(0)]);
}

function open(bytes: Uint8Array): GgufFile {
  const path = join(folder, "model.gguf");
  writeFileSync(path, bytes);
  const opened = GgufFile.open(path);
  opened.close();
  return opened;
}

/** A list in a list in a list ..., without its key. */
const nested = (depth: number): number[] => [
  ...Array.from({ length: depth }, () => [...u32(9), ...u64(1)]).flat(),
  ...[...u32(4), ...u64(0)],
];
const valid = file({
  entries: [
    entry("general.architecture", 8, ...text("llama")),
    entry("n", 4, ...u32(7)),
    entry("flag", 7, 1),
    entry("list", 9, ...u32(8), ...u64(2), ...text("a"), ...text("bc")),
    entry("numbers", 9, ...u32(5), ...u64(2), ...u32(1), ...u32(0xffffffff)),
  ],
  tensors: [{ name: "one", dims: [2, 2] }],
});

test("a header gives metadata and tensors", () => {
  const { metadata, tensors } = open(valid);
  expect(metadata.text("general.architecture")).toBe("llama");
  expect([metadata.count("n"), metadata.flag("flag", false)]).toEqual([7, true]);
  expect([metadata.texts("list"), metadata.numbers("numbers")]).toEqual([
    ["a", "bc"],
    [1, -1],
  ]);
  expect(tensors.get("one")).toMatchObject({ dtype: "F32", shape: [2, 2], elements: 4, byteLength: 16 });
});

describe("is refused", () => {
  const big = 2n ** 63n;
  it.each<[string, Uint8Array, RegExp]>([
    ["another kind of file", file({ magic: "GGML" }), /is not a GGUF file/],
    ["a Git LFS pointer", new TextEncoder().encode("version https://git-lfs"), /Git LFS pointer/],
    ["an old version", file({ version: 1 }), /GGUF file of version 1: little-endian ones of version 2 or 3/],
    ["a big-endian file", file({ version: 0x03000000 }), /big-endian/],
    ["a huge number of tensors", file({ tensorCount: big }), /claims \d+ tensors, more than the 65536 allowed/],
    ["a huge number of entries", file({ entryCount: big }), /claims \d+ metadata entries/],
    ["more entries than there are", file({ entryCount: 1, data: 0 }), /ends inside its header/],
    ["a text longer than the file", file({ entries: [[...u64(big)]] }), /ends inside its header/],
    ["a list longer than the file", file({ entries: [entry("l", 9, ...u32(4), ...u64(big))] }), /ends inside/],
    ["a list of texts longer than the file", file({ entries: [entry("l", 9, ...u32(8), ...u64(big))] }), /ends inside/],
    [
      "lists of lists of lists",
      file({ entries: [[...entry("l", 9), ...nested(10_000)]] }),
      /l is nested deeper than 4/,
    ],
    ["a value of an unknown kind", file({ entries: [entry("k", 99)] }), /k has a value of the unknown kind 99/],
    ["a list of an unknown kind", file({ entries: [entry("k", 9, ...u32(99), ...u64(0))] }), /unknown kind 99/],
    ["an entry twice", file({ entries: [entry("k", 7, 0), entry("k", 7, 0)] }), /has k twice/],
    ["a long key", file({ entries: [entry("k".repeat(300), 7, 0)] }), /metadata key of 300 characters/],
    ["a tensor twice", file({ tensors: [{}, { offset: 32 }], data: 64 }), /"t" is described twice/],
    ["too many dimensions", file({ tensors: [{ dims: [1, 1, 1, 1, 1] }] }), /has 5 dimensions/],
    [
      "a tensor larger than the file",
      file({ tensors: [{ dims: [99] }] }),
      /ends at byte \d+, the file has \d+ \(trunc/,
    ],
    ["a tensor of impossible size", file({ tensors: [{ dims: [big, big] }] }), /cannot be stored as F32/],
    ["a tensor outside of the file", file({ tensors: [{ offset: 2n ** 52n }] }), /truncated/],
    ["a tensor at an odd place", file({ tensors: [{ offset: 8 }] }), /begins at 8, not at a multiple of 32/],
    [
      "tensors over each other",
      file({ tensors: [{ dims: [9] }, { name: "u", offset: 32 }], data: 64 }),
      /"u" overlaps/,
    ],
    [
      "half a block",
      file({ tensors: [{ dims: [33], type: 8 }], data: 99 }),
      /cannot be stored as Q8_0, in blocks of 32/,
    ],
    ["a format that is not read", file({ tensors: [{ dims: [256], type: 10 }] }), /has the format Q2_K, which cannot/],
    ["an unknown format", file({ tensors: [{ type: 777 }] }), /has the format number 777/],
    ["an odd alignment", file({ entries: [entry("general.alignment", 4, ...u32(24))] }), /power of two/],
    [
      "an alignment of the wrong kind",
      file({ entries: [entry("general.alignment", 8, ...text("x"))] }),
      /finite number/,
    ],
    ["no bytes at all", new Uint8Array(0), /ends inside its header, at byte 0/],
  ])("%s", (_what, bytes, message) => {
    expect(() => open(bytes)).toThrow(CheckpointError);
    expect(() => open(bytes)).toThrow(message);
  });

  it("cut short at any byte of the header", () => {
    fc.assert(
      fc.property(fc.nat(valid.length - 17), (length) => {
        expect(() => open(valid.subarray(0, length))).toThrow(CheckpointError);
      }),
    );
  });

  it("with any byte changed, or gives something that can be read", () => {
    fc.assert(
      fc.property(fc.nat(valid.length - 17), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const changed = valid.slice();
        changed[at]! ^= change;
        try {
          open(changed);
        } catch (error) {
          expect(error).toBeInstanceOf(CheckpointError);
        }
      }),
    );
  });
});

test("the metadata names the key, what was expected and what was found", () => {
  const { metadata } = open(valid);
  expect(() => metadata.text("n")).toThrow("n in its metadata must be a text, found 7");
  expect(() => metadata.count("list")).toThrow("list in its metadata must be one positive integer, found a list of 2");
  expect(() => metadata.texts("numbers")).toThrow("must be a list of texts, found a list of 2");
  expect(() => metadata.number("missing")).toThrow("its metadata has no missing (expected a finite number)");
});
