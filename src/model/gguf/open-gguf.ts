// Opens a model in GGUF: one file, or the parts that llama.cpp's gguf-split makes (name-00001-of-00003.gguf). The first part
// has the metadata, every part some of the tensors.

import { existsSync } from "node:fs";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { GgufFile } from "./gguf-file.ts";
import type { GgufTensor } from "./gguf-header.ts";
import type { GgufMetadata } from "./gguf-metadata.ts";

// The metadata of a GGUF file that describe its model. Their keys begin with the architecture: "llama.block_count".
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

export interface GgufModel {
  readonly path: string;
  readonly metadata: GgufMetadata;
  /** By the names in the files. */
  readonly tensors: ReadonlyMap<string, { file: GgufFile; tensor: GgufTensor }>;
  /** Changes with any of the files. */
  readonly identity: string;
  /** Idempotent. */
  close(): void;
}

/** More parts than anybody makes. */
const MAX_PARTS = 1024;

/** `path`: the file, or the first part. */
export function openGguf(path: string): GgufModel {
  if (!existsSync(path)) throw new CheckpointError(path, "no such file");
  const files = [GgufFile.open(path)];
  const close = () => {
    for (const file of files) file.close();
  };
  try {
    const { metadata } = files[0]!;
    for (const part of otherParts(path, metadata)) files.push(GgufFile.open(part));
    const tensors = new Map<string, { file: GgufFile; tensor: GgufTensor }>();
    for (const file of files) {
      for (const [name, tensor] of file.tensors) {
        if (tensors.has(name)) throw new CheckpointError(file.path, `has tensor "${name}", as another part does`);
        tensors.set(name, { file, tensor });
      }
    }
    const identity = files.map((file) => file.identity).join();
    return { path, metadata, tensors, identity, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** The metadata alone. */
export function readGgufMetadata(path: string): GgufMetadata {
  if (!existsSync(path)) throw new CheckpointError(path, "no such file");
  const file = GgufFile.open(path);
  file.close();
  return file.metadata;
}

function otherParts(path: string, metadata: GgufMetadata): string[] {
  const count = metadata.count("split.count", 1);
  if (count === 1) return [];
  if (count > MAX_PARTS) throw new CheckpointError(path, `claims ${count} parts, more than the ${MAX_PARTS} allowed`);
  const number = (value: number) => String(value).padStart(5, "0");
  const ending = `-${number(1)}-of-${number(count)}.gguf`;
  if (metadata.number("split.no", 0) !== 0 || !path.endsWith(ending)) {
    throw new CheckpointError(path, `is one of ${count} parts: give the first one, whose name ends in ${ending}`);
  }
  return Array.from({ length: count - 1 }, (_, i) => {
    const part = `${path.slice(0, -ending.length)}-${number(i + 2)}-of-${number(count)}.gguf`;
    if (!existsSync(part)) throw new CheckpointError(part, `part ${i + 2} of ${count} is missing`);
    return part;
  });
}
