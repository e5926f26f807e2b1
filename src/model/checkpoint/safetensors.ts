// Reads safetensors files one tensor at a time. It uses memory for the result and one small piece of the file, never
// for the whole file. F32, F16 and BF16 become float32; any dtype can be read as raw bytes. Reading is synchronous,
// because loading happens at start or in a worker. checkpoint.ts knows which tensors a model needs.

import { CheckpointError, CheckpointFile } from "./checkpoint-file.ts";
import { firstNonFinite, widenBfloat16, widenFloat16 } from "./half-floats.ts";
import {
  MAX_HEADER_BYTES,
  parseSafetensorsHeader,
  type SafetensorsHeader,
  type TensorEntry,
} from "./safetensors-header.ts";

/** Bytes read at a time when values are converted; fits the second-level cache. */
const PIECE_BYTES = 256 * 1024;

/** "version " read as a header's length: a Git LFS pointer in place of the weights begins with it. */
const lfsPointer = 0x206e_6f69_7372_6576n;

export class SafetensorsFile {
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly #file: CheckpointFile;
  readonly #dataStart: number;

  /** Opens and checks the file. On a CheckpointError the file is closed again. */
  static open(path: string): SafetensorsFile {
    return CheckpointFile.open(path, (file) => new SafetensorsFile(file));
  }

  private constructor(file: CheckpointFile) {
    this.#file = file;
    const headerBytes = this.#headerLength();
    this.#dataStart = 8 + headerBytes;
    const json = new Uint8Array(headerBytes);
    file.readAt(8, json);
    const header: SafetensorsHeader = parseSafetensorsHeader(file.path, json, file.bytes - this.#dataStart);
    this.tensors = header.tensors;
    this.metadata = header.metadata;
  }

  get path(): string {
    return this.#file.path;
  }

  /** Changes with the file. */
  get identity(): string {
    return this.#file.identity;
  }

  /** The tensor's description. Throws if the file has no tensor of that name. */
  entry(name: string): TensorEntry {
    const entry = this.tensors.get(name);
    if (entry === undefined) throw new CheckpointError(this.path, `has no tensor "${name}"`);
    return entry;
  }

  /** Where the tensor's bytes begin in the file. */
  offsetOf(name: string): number {
    return this.#dataStart + this.entry(name).begin;
  }

  /** The values of an F32, F16 or BF16 tensor, row-major. */
  read(name: string): Float32Array {
    const values = new Float32Array(this.entry(name).elements);
    this.readPart(name, 0, values);
    return values;
  }

  /** Fills `values` with the tensor's values from number `first` on. Throws unless all are finite. */
  readPart(name: string, first: number, values: Float32Array): void {
    const entry = this.entry(name);
    if (first + values.length > entry.elements) {
      throw new Error(`tensor "${name}" has ${entry.elements} values, asked for ${first + values.length}`);
    }
    const start = this.offsetOf(name);
    let bad: number;
    switch (entry.dtype) {
      case "F32":
        this.#file.readAt(start + 4 * first, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
        bad = firstNonFinite(values, "F32");
        break;
      case "F16":
      case "BF16":
        bad = this.#readHalves(start + 2 * first, values, entry.dtype);
        break;
      default:
        throw new CheckpointError(this.path, `tensor "${name}" has dtype ${entry.dtype}, expected F32, F16 or BF16`);
    }
    if (bad !== -1) {
      throw new CheckpointError(this.path, `tensor "${name}" has the value ${values[bad]} at ${first + bad}`);
    }
  }

  /** A copy of the tensor's bytes as they are in the file (little-endian). */
  readBytes(name: string): Uint8Array {
    const entry = this.entry(name);
    const bytes = new Uint8Array(entry.byteLength);
    this.#file.readAt(this.offsetOf(name), bytes);
    return bytes;
  }

  /** Idempotent. Reading afterwards throws. */
  close(): void {
    this.#file.close();
  }

  #headerLength(): number {
    const fileBytes = this.#file.bytes;
    if (fileBytes < 8) throw new CheckpointError(this.path, `${fileBytes} bytes are not a safetensors file`);
    const length = new BigUint64Array(1);
    this.#file.readAt(0, new Uint8Array(length.buffer));
    if (length[0] === lfsPointer) {
      throw new CheckpointError(this.path, "is a Git LFS pointer, not the file: get that with `git lfs pull`");
    }
    const limit = Math.min(fileBytes - 8, MAX_HEADER_BYTES);
    if (length[0]! > BigInt(limit)) {
      throw new CheckpointError(
        this.path,
        `claims a header of ${length[0]} bytes, at most ${limit} are possible (truncated, or not a safetensors file)`,
      );
    }
    return Number(length[0]);
  }

  /** Index of the first value that is not finite, or -1. Stops reading after the piece that holds it. */
  #readHalves(position: number, values: Float32Array, dtype: "F16" | "BF16"): number {
    const widen = dtype === "F16" ? widenFloat16 : widenBfloat16;
    const piece = new Uint16Array(Math.min(PIECE_BYTES / 2, values.length));
    for (let done = 0; done < values.length; done += piece.length) {
      const part = piece.subarray(0, Math.min(piece.length, values.length - done));
      this.#file.readAt(position + done * 2, new Uint8Array(part.buffer, 0, part.byteLength));
      widen(part, values, done);
      const bad = firstNonFinite(part, dtype);
      if (bad !== -1) return done + bad;
    }
    return -1;
  }
}
