// The embedding matrix, kept in its stored type and widened row by row. Looking up a token costs nothing beside the
// model, and there is no float32 copy of the largest matrix.

import type { Checkpoint, TensorReader } from "./checkpoint/checkpoint.ts";
import { CheckpointError } from "./checkpoint/checkpoint-error.ts";
import { firstNonFinite } from "./checkpoint/finite.ts";
import { widenBfloat16, widenFloat16 } from "./checkpoint/half-floats.ts";

export class Embedding {
  readonly #rows: Float32Array | Uint16Array;
  readonly #widen: (row: Uint16Array, target: Float32Array, offset: number) => void;
  readonly #width: number;
  readonly #scale: number;

  /**
   * `tensor`: [vocab, hidden] in F32, F16 or BF16. `scale` multiplies every embedding (Gemma). `shared`: the tensor's
   * bytes, if other threads use them too.
   */
  constructor(tensor: TensorReader, scale: number, shared?: SharedArrayBuffer) {
    this.#width = tensor.shape[1]!;
    this.#scale = Math.fround(scale);
    const bytes = shared === undefined ? tensor.bytes() : new Uint8Array(shared);
    const Stored = tensor.dtype === "F32" ? Float32Array : Uint16Array;
    this.#rows = new Stored(bytes.buffer as ArrayBuffer, bytes.byteOffset, tensor.elements);
    const bad = firstNonFinite(this.#rows, tensor.dtype as "F32" | "F16" | "BF16");
    if (bad !== -1) {
      throw new CheckpointError(tensor.file, `tensor "${tensor.name}" has a value that is not finite at ${bad}`);
    }
    this.#widen = tensor.dtype === "BF16" ? widenBfloat16 : widenFloat16;
  }

  /** Writes the embedding of `token` at row `row` of `target` [n, hidden]. */
  copyTo(token: number, target: Float32Array, row: number): void {
    const stored = this.#rows.subarray(token * this.#width, (token + 1) * this.#width);
    const offset = row * this.#width;
    if (stored instanceof Uint16Array) this.#widen(stored, target, offset);
    else target.set(stored, offset);
    if (this.#scale === 1) return;
    for (let i = offset; i < offset + this.#width; i++) target[i] = target[i]! * this.#scale;
  }
}

/** The embedding's bytes in memory that engines in several threads can share. */
export function sharedEmbedding(checkpoint: Checkpoint): SharedArrayBuffer {
  const bytes = checkpoint.tensor(checkpoint.tensors.embedding.name).bytes();
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}
