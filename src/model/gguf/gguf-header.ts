// The header of a GGUF file: metadata, then the name, shape, format and place of each tensor. It is checked completely, so
// later reads cannot go out of bounds: known formats, whole blocks, aligned places inside the file, no overlaps.

import { BLOCK_FORMATS, type WeightDtype } from "../checkpoint/block-formats.ts";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { GgufMetadata, type GgufValue, type HeaderCursor, readValue } from "./gguf-metadata.ts";

export interface GgufTensor {
  readonly name: string;
  readonly dtype: WeightDtype;
  /** Row-major, outermost dimension first. */
  readonly shape: readonly number[];
  readonly elements: number;
  /** First byte in the file. */
  readonly begin: number;
  readonly byteLength: number;
}

export interface GgufHeader {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** Formats by their code in the file. */
const DTYPES: ReadonlyMap<number, WeightDtype> = new Map([
  [0, "F32"],
  [1, "F16"],
  [2, "Q4_0"],
  [3, "Q4_1"],
  [6, "Q5_0"],
  [7, "Q5_1"],
  [8, "Q8_0"],
  [12, "Q4_K"],
  [13, "Q5_K"],
  [14, "Q6_K"],
  [30, "BF16"],
]);
/** Formats that are not read, by their code, for the error. */
const OTHER_DTYPES: ReadonlyMap<number, string> = new Map([
  [9, "Q8_1"],
  [10, "Q2_K"],
  [11, "Q3_K"],
  [15, "Q8_K"],
  [16, "IQ2_XXS"],
  [17, "IQ2_XS"],
  [18, "IQ3_XXS"],
  [19, "IQ1_S"],
  [20, "IQ4_NL"],
  [21, "IQ3_S"],
  [22, "IQ2_S"],
  [23, "IQ4_XS"],
  [29, "IQ1_M"],
  [34, "TQ1_0"],
  [35, "TQ2_0"],
  [39, "MXFP4"],
]);

/** More than the largest models have. */
const MAX_ENTRIES = 65_536;
const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;
const MAGIC = 0x4655_4747;
/** The beginning of a Git LFS pointer ("version") in place of the file. */
const LFS_POINTER = 0x7372_6576;

/** `fileBytes`: length of the file. Throws CheckpointError. */
export function readGgufHeader(path: string, cursor: HeaderCursor, fileBytes: number): GgufHeader {
  checkKind(path, cursor);
  const tensorCount = entryCount(path, cursor, "tensors");
  const metadata = readMetadata(path, cursor, entryCount(path, cursor, "metadata entries"));
  const alignment = metadata.number("general.alignment", DEFAULT_ALIGNMENT);
  if (!(alignment >= 1 && alignment <= 2 ** 20) || !Number.isInteger(Math.log2(alignment))) {
    throw new CheckpointError(path, `general.alignment must be a power of two up to 1048576, found ${alignment}`);
  }
  const stored = Array.from({ length: tensorCount }, () => readTensor(path, cursor));
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const { offset, ...tensor } of stored) {
    if (tensors.has(tensor.name)) throw new CheckpointError(path, `tensor "${tensor.name}" is described twice`);
    if (offset % alignment !== 0) {
      throw new CheckpointError(path, `tensor "${tensor.name}" begins at ${offset}, not at a multiple of ${alignment}`);
    }
    tensors.set(tensor.name, { ...tensor, begin: dataStart + offset });
  }
  checkLayout(path, tensors, fileBytes);
  return { metadata, tensors };
}

function checkKind(path: string, cursor: HeaderCursor): void {
  const magic = cursor.uint32();
  if (magic === LFS_POINTER) {
    throw new CheckpointError(path, "is a Git LFS pointer, not the file: get that with `git lfs pull`");
  }
  if (magic !== MAGIC) throw new CheckpointError(path, 'is not a GGUF file (it does not begin with "GGUF")');
  const version = cursor.uint32();
  if (version === 2 || version === 3) return;
  const problem = version % 65_536 === 0 ? "is a big-endian GGUF file" : `is a GGUF file of version ${version}`;
  throw new CheckpointError(path, `${problem}: little-endian ones of version 2 or 3 can be served`);
}

function entryCount(path: string, cursor: HeaderCursor, what: string): number {
  const count = cursor.uint64();
  if (count <= MAX_ENTRIES) return count;
  throw new CheckpointError(path, `claims ${count} ${what}, more than the ${MAX_ENTRIES} allowed`);
}

function readMetadata(path: string, cursor: HeaderCursor, count: number): GgufMetadata {
  const values = new Map<string, GgufValue>();
  for (let i = 0; i < count; i++) {
    const key = readName(path, cursor, "metadata key");
    if (values.has(key)) throw new CheckpointError(path, `its metadata has ${key} twice`);
    values.set(key, readValue(path, key, cursor));
  }
  return new GgufMetadata(path, values);
}

function readTensor(path: string, cursor: HeaderCursor): Omit<GgufTensor, "begin"> & { offset: number } {
  const name = readName(path, cursor, "tensor name");
  const wrong = (problem: string) => new CheckpointError(path, `tensor "${name}" ${problem}`);
  const dimensions = cursor.uint32();
  if (dimensions > MAX_DIMENSIONS) throw wrong(`has ${dimensions} dimensions, at most ${MAX_DIMENSIONS} are possible`);
  const shape = Array.from({ length: dimensions }, () => cursor.uint64()).reverse();
  const code = cursor.uint32();
  const offset = cursor.uint64();
  const dtype = DTYPES.get(code);
  if (dtype === undefined) {
    const found = OTHER_DTYPES.get(code) ?? `number ${code}`;
    throw wrong(`has the format ${found}, which cannot be served (these can: ${[...DTYPES.values()].join(", ")})`);
  }
  const elements = shape.reduce((product, size) => product * size, 1);
  const { values, bytes } = BLOCK_FORMATS[dtype];
  const byteLength = (elements / values) * bytes;
  if (!Number.isSafeInteger(byteLength) || !Number.isSafeInteger(offset) || (shape.at(-1) ?? 1) % values !== 0) {
    throw wrong(`of shape [${shape}] cannot be stored as ${dtype}, in blocks of ${values} at ${offset}`);
  }
  return { name, dtype, shape, elements, offset, byteLength };
}

/** Names appear in messages, so their length is bounded. */
function readName(path: string, cursor: HeaderCursor, what: string): string {
  const name = cursor.text();
  if (name.length <= 256) return name;
  throw new CheckpointError(path, `has a ${what} of ${name.length} characters, at most 256 are possible`);
}

function checkLayout(path: string, tensors: ReadonlyMap<string, GgufTensor>, fileBytes: number): void {
  let end = 0;
  let before = "";
  for (const tensor of [...tensors.values()].sort((a, b) => a.begin - b.begin || a.byteLength - b.byteLength)) {
    if (tensor.begin < end) throw new CheckpointError(path, `tensor "${tensor.name}" overlaps tensor "${before}"`);
    end = tensor.begin + tensor.byteLength;
    before = tensor.name;
  }
  if (end <= fileBytes) return;
  const sizes = `tensor "${before}" ends at byte ${end}, the file has ${fileBytes}`;
  throw new CheckpointError(path, `${sizes} (truncated: an incomplete download?)`);
}
