// Opens a model in GGUF: one file, or the parts that llama.cpp's gguf-split makes (name-00001-of-00003.gguf). The first part
// has the metadata, every part some of the tensors.

import { existsSync } from "node:fs";
import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import { GgufFile } from "./gguf-file.ts";
import type { GgufTensor } from "./gguf-header.ts";
import type { GgufMetadata } from "./gguf-metadata.ts";

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
