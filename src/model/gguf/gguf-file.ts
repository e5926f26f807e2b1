// One GGUF file: its header, and the values of its tensors, read in pieces. A model may be split over several files; see
// open-gguf.ts.

import { BLOCK_FORMATS } from "../checkpoint/block-formats.ts";
import { CheckpointError, CheckpointFile } from "../checkpoint/checkpoint-file.ts";
import { firstNonFinite } from "../checkpoint/half-floats.ts";
import { type GgufHeader, type GgufTensor, readGgufHeader } from "./gguf-header.ts";
import { type GgufMetadata, HeaderCursor } from "./gguf-metadata.ts";

/** Blocks widened at a time take about this many bytes, which fit the second-level cache. */
const PIECE_BYTES = 256 * 1024;

export class GgufFile {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly #file: CheckpointFile;

  /** Opens and checks the file. On a CheckpointError the file is closed again. */
  static open(path: string): GgufFile {
    return CheckpointFile.open(path, (file) => new GgufFile(file));
  }

  private constructor(file: CheckpointFile) {
    this.#file = file;
    const header: GgufHeader = readGgufHeader(file.path, new HeaderCursor(file), file.bytes);
    this.metadata = header.metadata;
    this.tensors = header.tensors;
  }

  get path(): string {
    return this.#file.path;
  }

  /** Changes with the file. */
  get identity(): string {
    return this.#file.identity;
  }

  /** Fills `values` with the tensor's values from number `first` on, as float32. Throws unless all are finite. */
  readValues(tensor: GgufTensor, first: number, values: Float32Array): void {
    if (first + values.length > tensor.elements) {
      throw new Error(`tensor "${tensor.name}" has ${tensor.elements} values, asked for ${first + values.length}`);
    }
    const format = BLOCK_FORMATS[tensor.dtype];
    // A read that begins or ends inside a block goes through whole blocks.
    const from = Math.floor(first / format.values) * format.values;
    const to = Math.ceil((first + values.length) / format.values) * format.values;
    const whole = from === first && to === first + values.length ? values : new Float32Array(to - from);
    this.#readBlocks(tensor, from / format.values, whole);
    if (whole !== values) values.set(whole.subarray(first - from, first - from + values.length));
    const bad = firstNonFinite(values, "F32");
    if (bad === -1) return;
    throw new CheckpointError(this.path, `tensor "${tensor.name}" has the value ${values[bad]} at ${first + bad}`);
  }

  /** A copy of the tensor's bytes as they are in the file. */
  readBytes(tensor: GgufTensor): Uint8Array {
    const bytes = new Uint8Array(tensor.byteLength);
    this.#file.readAt(tensor.begin, bytes);
    return bytes;
  }

  /** Idempotent. Reading afterwards throws. */
  close(): void {
    this.#file.close();
  }

  #readBlocks({ dtype, begin }: GgufTensor, firstBlock: number, values: Float32Array): void {
    const format = BLOCK_FORMATS[dtype];
    const blocks = values.length / format.values;
    const atOnce = Math.min(blocks, Math.floor(PIECE_BYTES / format.bytes));
    const piece = new Uint8Array(atOnce * format.bytes);
    for (let block = 0; block < blocks; block += atOnce) {
      const count = Math.min(atOnce, blocks - block);
      const part = piece.subarray(0, count * format.bytes);
      this.#file.readAt(begin + (firstBlock + block) * format.bytes, part);
      format.widen(part, values.subarray(block * format.values, (block + count) * format.values));
    }
  }
}
