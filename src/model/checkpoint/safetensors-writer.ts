// Writes safetensors files as the reference implementation does: wide dtypes first, then by name, and the header padded
// with spaces so that the data begins at a multiple of 8. The same tensors always give the same bytes.

import { writeFileDurably } from "../../system/files.ts";
import { narrowToBfloat16, narrowToFloat16 } from "./half-floats.ts";

export interface TensorToWrite {
  name: string;
  shape: readonly number[];
  /** Row-major. */
  values: Float32Array;
  dtype: "F32" | "F16" | "BF16";
}

/** Replaces `path` atomically. The file is on the disk when this returns. */
export function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> = {},
): void {
  writeFileDurably(path, encodeSafetensors(tensors, metadata));
}

/** The file as pieces, the header first. Values are converted one tensor at a time. */
export function* encodeSafetensors(
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>>,
): Generator<Uint8Array> {
  const ordered = [...tensors].sort((a, b) => width(b) - width(a) || rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  const header: Record<string, unknown> = Object.create(null);
  if (Object.keys(metadata).length > 0) header.__metadata__ = metadata;
  let position = 0;
  for (const tensor of ordered) {
    const elements = tensor.shape.reduce((product, size) => product * size, 1);
    if (elements !== tensor.values.length || tensor.name === "__metadata__" || tensor.name in header) {
      throw new Error(`cannot write tensor "${tensor.name}": wrong length or duplicate name`);
    }
    const end = position + elements * width(tensor);
    header[tensor.name] = { dtype: tensor.dtype, shape: tensor.shape, data_offsets: [position, end] };
    position = end;
  }
  yield encodeHeader(header);
  for (const tensor of ordered) yield encodeValues(tensor);
}

function width(tensor: TensorToWrite): number {
  return tensor.dtype === "F32" ? 4 : 2;
}

/** Order among dtypes of one width. */
function rank(tensor: TensorToWrite): number {
  return tensor.dtype === "F16" ? 1 : 0;
}

function encodeHeader(header: Readonly<Record<string, unknown>>): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(json, 8);
  return bytes;
}

function encodeValues({ values, dtype }: TensorToWrite): Uint8Array {
  const stored = dtype === "F32" ? values : dtype === "F16" ? narrowToFloat16(values) : narrowToBfloat16(values);
  return new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
}
