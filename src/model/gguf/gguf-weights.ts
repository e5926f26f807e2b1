// The tensors of a GGUF file under the names and in the order of rows that transformers gives them. The experts of a layer,
// which a file stacks in one tensor, are tensors of their own.

import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import type { StoredTensor, WeightFile, WeightFiles } from "../checkpoint/weight-files.ts";
import { architectureOf, isStacked, transformersName } from "./architectures.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { GgufTensor } from "./gguf-header.ts";
import { GgufFields, openGguf } from "./open-gguf.ts";

/** Tensors that configure the model; gguf-config.ts reads them. */
const CONFIGURATION = ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];

interface Place {
  file: GgufFile;
  tensor: GgufTensor;
  shape: readonly number[];
  /** Number of its first value in the tensor. */
  first: number;
  /** Head size, if the rows of each head are interleaved; else null. */
  interleaved: number | null;
}

export function openGgufWeights(path: string): WeightFiles {
  const model = openGguf(path);
  try {
    const fields = new GgufFields(model);
    const architecture = architectureOf(path, fields.architecture);
    const places = new Map<string, Place>();
    for (const [name, { file, tensor }] of model.tensors) {
      if (CONFIGURATION.includes(name)) continue;
      const turned = architecture.interleaved && /\.attn_[qk]\./.test(name);
      const interleaved = turned ? fields.headDim : null;
      for (const { expert, shape, first } of partsOf(architecture.sparse === true && isStacked(name), tensor)) {
        const known = transformersName(architecture, name, expert) ?? name;
        if (places.has(known)) throw new CheckpointError(path, `has two tensors that mean ${known}`);
        places.set(known, { file, tensor, shape, first, interleaved });
      }
    }
    const weights = new GgufWeights(path, model.identity, places);
    return { byTensor: new Map([...places.keys()].map((name) => [name, weights])), close: () => model.close() };
  } catch (error) {
    model.close();
    throw error;
  }
}

/** A tensor as one, or as one for each expert: [experts, out, in]. */
function* partsOf(stacked: boolean, { shape, elements }: GgufTensor) {
  if (!stacked || shape.length !== 3) {
    yield { expert: null, shape, first: 0 };
    return;
  }
  const [experts, ...each] = shape;
  for (let expert = 0; expert < experts!; expert++) {
    yield { expert, shape: each, first: (expert * elements) / experts! };
  }
}

class GgufWeights implements WeightFile {
  readonly path: string;
  readonly identity: string;
  readonly #places: ReadonlyMap<string, Place>;

  constructor(path: string, identity: string, places: ReadonlyMap<string, Place>) {
    this.path = path;
    this.identity = identity;
    this.#places = places;
  }

  entry(name: string): StoredTensor {
    const { tensor, shape } = this.#place(name);
    return { name, dtype: tensor.dtype, shape, elements: shape.reduce((product, size) => product * size, 1) };
  }

  read(name: string): Float32Array {
    const values = new Float32Array(this.entry(name).elements);
    this.readPart(name, 0, values);
    return values;
  }

  readPart(name: string, first: number, values: Float32Array): void {
    const { file, tensor, shape, first: begin, interleaved } = this.#place(name);
    if (interleaved === null) {
      file.readValues(tensor, begin + first, values);
      return;
    }
    const width = shape[1] ?? 1;
    for (let done = 0; done < values.length; ) {
      const row = Math.floor((first + done) / width);
      const inRow = (first + done) % width;
      const count = Math.min(width - inRow, values.length - done);
      const at = storedRow(row, interleaved) * width + inRow;
      file.readValues(tensor, at, values.subarray(done, done + count));
      done += count;
    }
  }

  readBytes(name: string): Uint8Array {
    const { file, tensor, shape, interleaved } = this.#place(name);
    if (interleaved !== null || shape !== tensor.shape) throw new Error(`${name} is not stored as it is`);
    return file.readBytes(tensor);
  }

  #place(name: string): Place {
    const place = this.#places.get(name);
    if (place === undefined) throw new CheckpointError(this.path, `has no tensor "${name}"`);
    return place;
  }
}

/** Where a file with interleaved heads keeps a row: the two halves of a head take turns. */
function storedRow(row: number, headDim: number): number {
  const inHead = row % headDim;
  const half = headDim / 2;
  return row - inHead + (inHead < half ? 2 * inHead : 2 * (inHead - half) + 1);
}
