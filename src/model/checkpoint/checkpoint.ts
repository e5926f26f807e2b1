// A checkpoint, which is a folder or a GGUF file: configuration and weights, checked against each other before anything is
// served. Weights are read tensor by tensor on demand and not kept. Close it once everything is loaded.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../json/json.ts";
import { familyNamed } from "../families/registry.ts";
import { openGgufWeights } from "../gguf/gguf-weights.ts";
import { BLOCK_FORMATS, isWeightDtype } from "./block-formats.ts";
import { CheckpointError, isFolder, isGguf } from "./checkpoint-file.ts";
import { eachTensor, expectedTensors, type ModelTensors } from "./expected-tensors.ts";
import { type ModelConfig, readModelConfig } from "./model-config.ts";
import { openWeightFiles, type StoredTensor, type WeightFiles } from "./weight-files.ts";

export interface Checkpoint {
  /** The folder or the GGUF file. */
  readonly path: string;
  readonly config: ModelConfig;
  /** The model's tensors by role. Every one is present with this shape. */
  readonly tensors: ModelTensors;
  /** Every tensor in the files, used or not. */
  readonly names: readonly string[];
  /** Tensors that the model does not use. They may mean that config.json belongs to another model. */
  readonly unused: readonly string[];
  /** Changes when the configuration or a file of weights changes. */
  readonly identity: string;
  tensor(name: string): TensorReader;
  /** Frees the file handles. Idempotent. */
  close(): void;
}

export interface TensorReader extends StoredTensor {
  /** Where it is stored, for messages. */
  readonly file: string;
  /** The values as float32, row-major. Reads the file on every call. See block-formats.ts. */
  read(): Float32Array;
  /** Fills `values` with the tensor's values from number `first` on. */
  readPart(first: number, values: Float32Array): void;
  /** The stored bytes, any dtype. */
  bytes(): Uint8Array;
}

/** Opens the checkpoint again. Throws if it changed since the server started. */
export function reopenCheckpoint(path: string, identity: string): Checkpoint {
  const checkpoint = openCheckpoint(path);
  if (checkpoint.identity === identity) return checkpoint;
  checkpoint.close();
  throw new CheckpointError(path, "changed since the server started; restart the server");
}

/** Opens and checks a checkpoint folder or a GGUF file. Throws CheckpointError. */
export function openCheckpoint(path: string): Checkpoint {
  const isFile = isGguf(path);
  if (!isFile && !isFolder(path)) throw new CheckpointError(path, "no such folder");
  const config = readModelConfig(path);
  const files = isFile ? openGgufWeights(path) : openWeightFiles(path);
  try {
    // GGUF files store every linear layer [out, in], those of GPT-2 too.
    const tensors = expectedTensors(config, tensorPrefix(config, files), isFile ? false : undefined);
    const used = new Set<string>();
    for (const { name, shape } of eachTensor(tensors)) {
      checkTensor(path, files, name, shape);
      used.add(name);
    }
    const names = [...files.byTensor.keys()];
    return {
      path,
      config,
      tensors,
      names,
      unused: names.filter((name) => !used.has(name)),
      identity: JSON.stringify([config, ...new Set([...files.byTensor.values()].map((file) => file.identity))]),
      tensor: (name) => readerOf(path, files, name),
      close: () => files.close(),
    };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** See Checkpoint.identity. */
export function checkpointIdentity(path: string): string {
  const checkpoint = openCheckpoint(path);
  checkpoint.close();
  return checkpoint.identity;
}

/** The prefix of this checkpoint's embedding; the usual one when none fits. */
function tensorPrefix(config: ModelConfig, files: WeightFiles): string {
  const { tensorPrefixes, names } = familyNamed(config.family);
  const found = tensorPrefixes.find((prefix) => files.byTensor.has(`${prefix}${names.embedding}.weight`));
  return found ?? tensorPrefixes[0]!;
}

function checkTensor(path: string, files: WeightFiles, name: string, shape: readonly number[]): void {
  const file = files.byTensor.get(name);
  if (file === undefined) {
    throw new CheckpointError(path, `the weights have no tensor "${name}" (expected shape [${shape}])`);
  }
  const entry = file.entry(name);
  if (entry.shape.length !== shape.length || entry.shape.some((size, i) => size !== shape[i])) {
    const source = isGguf(path) ? "its metadata" : "config.json";
    const sizes = `expected [${shape}] after ${source}, found [${entry.shape}]`;
    throw new CheckpointError(file.path, `tensor "${name}" has the wrong shape: ${sizes}`);
  }
  if (!isWeightDtype(entry.dtype)) {
    throw new CheckpointError(file.path, `tensor "${name}" has dtype ${entry.dtype}, expected F32, F16 or BF16`);
  }
}

function readerOf(path: string, files: WeightFiles, name: string): TensorReader {
  const file = files.byTensor.get(name);
  if (file === undefined) throw new CheckpointError(path, `the weights have no tensor "${name}"`);
  const { dtype, shape, elements } = file.entry(name);
  return {
    name,
    file: file.path,
    dtype,
    shape,
    elements,
    read: () => file.read(name),
    readPart: (first, values) => file.readPart(name, first, values),
    bytes: () => file.readBytes(name),
  };
}

// How a checkpoint stores its values, without reading them.

/** As its config.json says it: bfloat16, float16, float32. null = it does not say, or there is no such file (a GGUF file has many types). */
export function storedType(folder: string): string | null {
  const file = join(folder, "config.json");
  if (!existsSync(file)) return null;
  const config: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isJsonObject(config)) return null;
  const inner = isJsonObject(config.text_config) ? config.text_config : {};
  const type = config.dtype ?? config.torch_dtype ?? inner.dtype ?? inner.torch_dtype;
  return typeof type === "string" ? type : null;
}

/** Bytes of one value of the embedding, which memory keeps as it is stored. Weights need not be there: then config.json decides. */
export function embeddingValueBytes(path: string): number {
  try {
    const { tensors, tensor, close } = openCheckpoint(path);
    const { dtype } = tensor(tensors.embedding.name);
    close();
    if (isWeightDtype(dtype)) return BLOCK_FORMATS[dtype].bytes / BLOCK_FORMATS[dtype].values;
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
  }
  return storedType(path) === "float32" ? 4 : 2;
}
