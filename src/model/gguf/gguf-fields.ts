// The metadata of a GGUF file that describe its model. Their keys begin with the architecture: "llama.block_count".

import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import type { GgufModel } from "./open-gguf.ts";

export class GgufFields {
  readonly architecture: string;
  readonly #model: GgufModel;

  constructor(model: GgufModel) {
    this.#model = model;
    this.architecture = model.metadata.text("general.architecture");
  }

  has(key: string): boolean {
    return this.#model.metadata.has(this.#key(key));
  }

  text(key: string, fallback?: string): string {
    return this.#model.metadata.text(this.#key(key), fallback);
  }

  number(key: string, fallback?: number): number {
    return this.#model.metadata.number(this.#key(key), fallback);
  }

  count(key: string, fallback?: number): number {
    return this.#model.metadata.count(this.#key(key), fallback);
  }

  get headDim(): number {
    const headDim = this.count(
      "attention.key_length",
      this.count("embedding_length") / this.count("attention.head_count"),
    );
    const ofValues = this.count("attention.value_length", headDim);
    if (ofValues === headDim) return headDim;
    throw new CheckpointError(
      this.#model.path,
      `its heads have ${headDim} dimensions for keys and ${ofValues} for values, which must be the same`,
    );
  }

  /** By the name in the file. */
  hasTensor(name: string): boolean {
    return this.#model.tensors.has(name);
  }

  /** Row-major shape of a tensor that every model has. */
  shape(name: string): readonly number[] {
    const found = this.#model.tensors.get(name);
    if (found === undefined) throw new CheckpointError(this.#model.path, `has no tensor "${name}"`);
    return found.tensor.shape;
  }

  /** All values of a small tensor; null if there is none of that name. */
  values(name: string): number[] | null {
    const found = this.#model.tensors.get(name);
    if (found === undefined) return null;
    const values = new Float32Array(found.tensor.elements);
    found.file.readValues(found.tensor, 0, values);
    return [...values];
  }

  #key(key: string): string {
    return `${this.architecture}.${key}`;
  }
}
