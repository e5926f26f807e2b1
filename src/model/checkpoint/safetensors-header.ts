// The header of a safetensors file: 8 bytes of length, then JSON that maps tensor names to dtype, shape and bytes. It
// is checked completely: known dtypes, sizes that follow from the shapes, and tensors that fill the data section
// exactly, without gaps or overlaps. So later reads cannot go out of bounds.

import { isJsonObject, stringEnd } from "../../json/json.ts";
import { CheckpointError } from "./checkpoint-file.ts";
import { parseJsonObject } from "./json-file.ts";

/** The format's own limit. */
export const MAX_HEADER_BYTES = 100_000_000;

const bytesPerElement = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  F8_E8M0: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
  C64: 8,
} as const;

export type Dtype = keyof typeof bytesPerElement;

export interface TensorEntry {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
  /** Number of elements: the product of the shape, 1 for a scalar. */
  elements: number;
  /** First byte of the data, counted from the start of the data section. */
  begin: number;
  /** Length of the data in bytes. */
  byteLength: number;
}

export interface SafetensorsHeader {
  tensors: ReadonlyMap<string, TensorEntry>;
  metadata: Readonly<Record<string, string>>;
}

/** `dataBytes`: how many bytes follow the header in the file. */
export function parseSafetensorsHeader(file: string, json: Uint8Array, dataBytes: number): SafetensorsHeader {
  const tensors = new Map<string, TensorEntry>();
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(parseJsonObject(file, json))) {
    if (name === "__metadata__") metadata = parseMetadata(file, value);
    else tensors.set(name, parseEntry(file, name, value));
  }
  const twice = repeatedName(json);
  if (twice !== null) throw new CheckpointError(file, `tensor "${shortName(twice)}" is described twice`);
  checkLayout(file, tensors, dataBytes);
  return { tensors, metadata };
}

/**
 * A name that a well-formed header has twice, or null. The format forbids duplicates, but a JSON parser silently keeps the
 * last one. Readers that keep the first would see other weights in the same file.
 */
function repeatedName(json: Uint8Array): string | null {
  const text = new TextDecoder().decode(json);
  const names = new Set<string>();
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") depth--;
    else if (char === '"') {
      const start = i;
      i = stringEnd(text, start);
      if (depth !== 1) continue;
      // On this level every value is an object, so every string is a name.
      const name = JSON.parse(text.slice(start, i + 1)) as string;
      if (names.has(name)) return name;
      names.add(name);
    }
  }
  return null;
}

function byteLengthOf(dtype: Dtype, elements: number): number {
  return bytesPerElement[dtype] * elements;
}

function parseMetadata(file: string, value: unknown): Record<string, string> {
  if (!isJsonObject(value) || !Object.values(value).every((text) => typeof text === "string")) {
    throw new CheckpointError(file, "__metadata__ must map strings to strings");
  }
  return value as Record<string, string>;
}

function parseEntry(file: string, name: string, value: unknown): TensorEntry {
  const wrong = (problem: string) => new CheckpointError(file, `tensor "${shortName(name)}" ${problem}`);
  if (!isJsonObject(value)) throw wrong("is not described by an object");
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== "string" || !Object.hasOwn(bytesPerElement, dtype)) {
    throw wrong(`has the unknown dtype ${JSON.stringify(dtype)?.slice(0, 40)}`);
  }
  if (!Array.isArray(shape) || shape.length > 16 || !shape.every(isSize)) {
    throw wrong("has a shape that is not a list of sizes");
  }
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize)) {
    throw wrong("has data_offsets that are not two positions");
  }
  const elements = (shape as number[]).reduce((product, size) => product * size, 1);
  const [begin, end] = offsets as [number, number];
  const byteLength = byteLengthOf(dtype as Dtype, elements);
  if (!Number.isSafeInteger(byteLength) || end - begin !== byteLength) {
    throw wrong(
      `of shape [${shape}] and dtype ${dtype} needs ${byteLength} bytes, its data_offsets give ${end - begin}`,
    );
  }
  return { name, dtype: dtype as Dtype, shape: shape as number[], elements, begin, byteLength };
}

function isSize(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function checkLayout(file: string, tensors: ReadonlyMap<string, TensorEntry>, dataBytes: number): void {
  const ordered = [...tensors.values()].sort((a, b) => a.begin - b.begin || a.byteLength - b.byteLength);
  let position = 0;
  for (const { name, begin, byteLength } of ordered) {
    if (begin !== position) {
      const what = begin < position ? "overlaps the one before" : "leaves a gap before it";
      throw new CheckpointError(file, `tensor "${shortName(name)}" ${what} (begins at ${begin}, expected ${position})`);
    }
    position += byteLength;
  }
  if (position !== dataBytes) {
    const what = dataBytes < position ? "truncated: an incomplete download?" : "bytes that belong to no tensor";
    throw new CheckpointError(file, `holds ${dataBytes} bytes of data, its tensors need ${position} (${what})`);
  }
}

function shortName(name: string): string {
  return name.length > 120 ? `${name.slice(0, 117)}...` : name;
}
