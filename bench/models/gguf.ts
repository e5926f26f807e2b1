// Writes GGUF files (version 3): typed metadata, then tensors aligned to 32 bytes. Tensors are produced one at a time, so
// the whole model is never in memory. gguf-model.ts knows which tensors a model has.

import { closeSync, openSync, writeSync } from "node:fs";
import { encode, encodedBytes, GGML_TYPE, type GgmlType } from "./ggml-blocks.ts";

export type GgufValue =
  | { type: "uint32"; value: number }
  | { type: "float32"; value: number }
  | { type: "string"; value: string }
  | { type: "bool"; value: boolean }
  | { type: "strings"; value: readonly string[] }
  | { type: "float32s"; value: readonly number[] }
  | { type: "int32s"; value: readonly number[] };

export interface GgufTensor {
  name: string;
  /** Row-major shape, outermost dimension first. Files store the reverse. */
  shape: readonly number[];
  type: GgmlType;
  read(): Float32Array;
}

const ALIGNMENT = 32;
const VALUE_TYPE = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

export function writeGguf(
  path: string,
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): void {
  const file = openSync(path, "w");
  try {
    writeAll(file, padded(header(metadata, tensors)));
    for (const tensor of tensors) writeAll(file, padded(encode(tensor.type, tensor.read())));
  } finally {
    closeSync(file);
  }
}

function header(metadata: Readonly<Record<string, GgufValue>>, tensors: readonly GgufTensor[]): Buffer {
  const entries = Object.entries(metadata);
  const parts = [Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(entries.length)];
  for (const [key, value] of entries) parts.push(text(key), encodeValue(value));
  let offset = 0;
  for (const { name, shape, type } of tensors) {
    parts.push(text(name), uint32(shape.length), ...shape.toReversed().map(uint64));
    parts.push(uint32(GGML_TYPE[type]), uint64(offset));
    const elements = shape.reduce((product, size) => product * size, 1);
    offset += alignedSize(encodedBytes(type, elements));
  }
  return Buffer.concat(parts);
}

function encodeValue(entry: GgufValue): Buffer {
  switch (entry.type) {
    case "uint32":
      return Buffer.concat([uint32(VALUE_TYPE.uint32), uint32(entry.value)]);
    case "float32": {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatLE(entry.value);
      return Buffer.concat([uint32(VALUE_TYPE.float32), bytes]);
    }
    case "bool":
      return Buffer.concat([uint32(VALUE_TYPE.bool), Buffer.of(entry.value ? 1 : 0)]);
    case "string":
      return Buffer.concat([uint32(VALUE_TYPE.string), text(entry.value)]);
    case "strings":
      return array(VALUE_TYPE.string, entry.value.map(text));
    case "float32s": {
      const bytes = Buffer.from(Float32Array.from(entry.value).buffer);
      return Buffer.concat([array(VALUE_TYPE.float32, [], entry.value.length), bytes]);
    }
    case "int32s": {
      const bytes = Buffer.alloc(4 * entry.value.length);
      for (const [i, value] of entry.value.entries()) bytes.writeInt32LE(value, 4 * i);
      return Buffer.concat([array(VALUE_TYPE.int32, [], entry.value.length), bytes]);
    }
    default:
      return entry satisfies never;
  }
}

function array(elementType: number, elements: readonly Buffer[], count = elements.length): Buffer {
  return Buffer.concat([uint32(VALUE_TYPE.array), uint32(elementType), uint64(count), ...elements]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function alignedSize(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function padded(bytes: Uint8Array): Uint8Array[] {
  return [bytes, new Uint8Array(alignedSize(bytes.length) - bytes.length)];
}

function writeAll(file: number, pieces: readonly Uint8Array[]): void {
  for (const piece of pieces) {
    for (let written = 0; written < piece.length; ) written += writeSync(file, piece, written);
  }
}
