// The embedding matrix, kept in its stored format and widened row by row. Looking up a token costs nothing beside the
// model, and there is no float32 copy of the largest matrix.

import { BLOCK_FORMATS, type BlockFormat, isWeightDtype } from "./checkpoint/block-formats.ts";
import type { Checkpoint, TensorReader } from "./checkpoint/checkpoint.ts";
import { CheckpointError } from "./checkpoint/checkpoint-file.ts";
import { firstNonFinite } from "./checkpoint/half-floats.ts";

export class Embedding {
  readonly #bytes: Uint8Array;
  readonly #format: BlockFormat;
  /** Bytes of one row. */
  readonly #stride: number;
  readonly #width: number;
  readonly #scale: number;
  readonly #positions: Float32Array | null;

  /**
   * `tensor`: [vocab, hidden]. `scale` multiplies every embedding (Gemma). `shared`: the tensor's bytes, if other threads
   * use them too. `positions`: [positions, hidden], added to the embeddings (GPT-2).
   */
  constructor(tensor: TensorReader, scale: number, shared?: SharedArrayBuffer, positions: Float32Array | null = null) {
    if (!isWeightDtype(tensor.dtype)) throw new Error(`an embedding cannot be ${tensor.dtype}`);
    this.#format = BLOCK_FORMATS[tensor.dtype];
    this.#positions = positions;
    this.#width = tensor.shape[1]!;
    this.#stride = (this.#width / this.#format.values) * this.#format.bytes;
    this.#scale = Math.fround(scale);
    this.#bytes = shared === undefined ? tensor.bytes() : new Uint8Array(shared);
    this.#checkValues(tensor);
  }

  /** `shared`: as for the constructor. */
  static of(checkpoint: Checkpoint, shared?: SharedArrayBuffer): Embedding {
    const { config, tensors } = checkpoint;
    const positions = tensors.positions === null ? null : checkpoint.tensor(tensors.positions.name).read();
    return new Embedding(checkpoint.tensor(tensors.embedding.name), config.embeddingScale, shared, positions);
  }

  /** Writes the embedding of `token` at row `row` of `target` [n, hidden]. `position`: of the token in its sequence. */
  copyTo(token: number, target: Float32Array, row: number, position = 0): void {
    const offset = row * this.#width;
    this.#widen(token, target.subarray(offset, offset + this.#width));
    if (this.#scale !== 1) {
      for (let i = offset; i < offset + this.#width; i++) target[i] = target[i]! * this.#scale;
    }
    if (this.#positions === null) return;
    const from = position * this.#width;
    for (let i = 0; i < this.#width; i++) target[offset + i] = target[offset + i]! + this.#positions[from + i]!;
  }

  #widen(token: number, values: Float32Array): void {
    this.#format.widen(this.#bytes.subarray(token * this.#stride, (token + 1) * this.#stride), values);
  }

  #checkValues({ name, file, shape }: TensorReader): void {
    const values = new Float32Array(this.#width);
    for (let token = 0; token < shape[0]!; token++) {
      this.#widen(token, values);
      const bad = firstNonFinite(values, "F32");
      if (bad === -1) continue;
      const at = token * this.#width + bad;
      throw new CheckpointError(file, `tensor "${name}" has a value that is not finite at ${at}`);
    }
  }
}

/** The embedding's bytes in memory that engines in several threads can share. */
export function sharedEmbedding(checkpoint: Checkpoint): SharedArrayBuffer {
  const bytes = checkpoint.tensor(checkpoint.tensors.embedding.name).bytes();
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}
