// The safetensors files of a checkpoint folder as one set of tensors: model.safetensors, or the shards that
// model.safetensors.index.json lists. Errors name missing shards and tensors. Shard names come from the index, so only
// plain file names inside the folder are accepted.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../json/json.ts";
import { CheckpointError } from "./checkpoint-file.ts";
import { readJsonObject } from "./json-file.ts";
import { SafetensorsFile } from "./safetensors.ts";

// What a checkpoint needs of a file of weights, whatever its format.

export interface StoredTensor {
  readonly name: string;
  /** As the format calls it: "BF16", "Q8_0". */
  readonly dtype: string;
  /** Row-major. */
  readonly shape: readonly number[];
  /** The product of the shape. */
  readonly elements: number;
}

export interface WeightFile {
  readonly path: string;
  /** Changes with the file. */
  readonly identity: string;
  /** Throws if the file has no tensor of that name. */
  entry(name: string): StoredTensor;
  /** All values as float32. */
  read(name: string): Float32Array;
  /** Fills `values` with the tensor's values from number `first` on. Throws unless all are finite. */
  readPart(name: string, first: number, values: Float32Array): void;
  /** A copy of the bytes as they are in the file. */
  readBytes(name: string): Uint8Array;
}

export interface WeightFiles {
  /** The file that holds each tensor. */
  byTensor: ReadonlyMap<string, WeightFile>;
  close(): void;
}

export const SINGLE_FILE = "model.safetensors";
/** The file that says which shard holds each tensor. */
export const INDEX_FILE = "model.safetensors.index.json";
const LARGEST_INDEX_BYTES = 100 * 2 ** 20;

export function openWeightFiles(folder: string): WeightFiles {
  const single = join(folder, SINGLE_FILE);
  if (existsSync(single)) {
    const file = SafetensorsFile.open(single);
    const byTensor = new Map([...file.tensors.keys()].map((name) => [name, file] as const));
    return { byTensor, close: () => file.close() };
  }
  const indexFile = join(folder, INDEX_FILE);
  if (existsSync(indexFile)) return openShards(folder, indexFile);
  throw new CheckpointError(folder, `has neither ${SINGLE_FILE} nor ${INDEX_FILE}${insteadFound(folder)}`);
}

/** Tensor name -> shard file name, from an index; every shard name is safe to join to the folder. */
export function readWeightMap(indexFile: string): ReadonlyMap<string, string> {
  const map = readJsonObject(indexFile, LARGEST_INDEX_BYTES).weight_map;
  if (!isJsonObject(map)) throw new CheckpointError(indexFile, "weight_map must be an object");
  const entries = Object.entries(map);
  for (const [tensor, shard] of entries) {
    if (typeof shard !== "string" || !/^[\w-][\w.-]*\.safetensors$/.test(shard)) {
      const found = JSON.stringify(shard)?.slice(0, 80);
      throw new CheckpointError(indexFile, `weight_map places "${tensor}" in ${found}, which is not a plain file name`);
    }
  }
  return new Map(entries as [string, string][]);
}

function openShards(folder: string, indexFile: string): WeightFiles {
  const weightMap = readWeightMap(indexFile);
  const shards = new Map<string, SafetensorsFile>();
  const close = () => {
    for (const shard of shards.values()) shard.close();
  };
  try {
    const byTensor = new Map<string, SafetensorsFile>();
    for (const [tensor, shardName] of weightMap) {
      let shard = shards.get(shardName);
      if (shard === undefined) {
        const path = join(folder, shardName);
        if (!existsSync(path)) {
          throw new CheckpointError(path, `shard is missing; ${INDEX_FILE} places "${tensor}" in it`);
        }
        shard = SafetensorsFile.open(path);
        shards.set(shardName, shard);
      }
      if (!shard.tensors.has(tensor)) {
        throw new CheckpointError(shard.path, `has no tensor "${tensor}", though ${INDEX_FILE} places it there`);
      }
      byTensor.set(tensor, shard);
    }
    return { byTensor, close };
  } catch (error) {
    close();
    throw error;
  }
}

function insteadFound(folder: string): string {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return " (the folder cannot be listed)";
  }
  // Listed but missing, for example in a cache from which files were deleted.
  const dangling = names.find((name) => name === SINGLE_FILE || name === INDEX_FILE);
  if (dangling !== undefined) return `; ${dangling} is a link to a file that is not there`;
  const pickled = names.find((name) => name.endsWith(".bin") || name.endsWith(".pth") || name.endsWith(".pt"));
  if (pickled !== undefined) return `; ${pickled} is a pickled checkpoint: convert it to safetensors first`;
  const gguf = names.find((name) => name.endsWith(".gguf"));
  return gguf === undefined ? "" : `; ${gguf} is a GGUF file: give its own path`;
}
