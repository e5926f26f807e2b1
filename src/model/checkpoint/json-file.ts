// Reads the JSON files of a checkpoint (config.json, the shard index, adapter_config.json, safetensors headers). They
// may come from anywhere, so size and nesting are bounded before parsing. config-fields.ts reads their fields.

import { closeSync, fstatSync, readSync } from "node:fs";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { openFile } from "../../system/files.ts";
import { CheckpointError } from "./checkpoint-file.ts";

/** Deeper than any real checkpoint file, and shallow enough that a hostile one costs nothing. */
const MAX_DEPTH = 64;

/** The JSON object in `file`. Reads at most `maxBytes` into memory. */
export function readJsonObject(file: string, maxBytes: number): JsonObject {
  return parseJsonObject(file, readWholeFile(file, maxBytes));
}

/** Like readJsonObject, but null when there is no such file. */
export function readOptionalJsonObject(file: string, maxBytes: number): JsonObject | null {
  try {
    return readJsonObject(file, maxBytes);
  } catch (error) {
    if (error instanceof CheckpointError && isMissing(error.cause)) return null;
    throw error;
  }
}

/** Parses UTF-8 bytes that must hold one JSON object. `file` is only for the error. */
export function parseJsonObject(file: string, bytes: Uint8Array): JsonObject {
  if (nestsTooDeep(bytes)) throw new CheckpointError(file, `JSON nested deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes));
  } catch (cause) {
    throw new CheckpointError(file, `not valid JSON (${(cause as Error).message})`, { cause });
  }
  if (!isJsonObject(value)) throw new CheckpointError(file, "expected a JSON object at the top");
  return value;
}

function readWholeFile(file: string, maxBytes: number): Uint8Array {
  let descriptor: number;
  try {
    descriptor = openFile(file);
  } catch (cause) {
    const problem = isMissing(cause) ? "no such file" : `cannot be opened (${(cause as Error).message})`;
    throw new CheckpointError(file, problem, { cause });
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw new CheckpointError(file, "not a regular file");
    if (stat.size > maxBytes) throw new CheckpointError(file, `${stat.size} bytes, more than the ${maxBytes} allowed`);
    const bytes = new Uint8Array(stat.size);
    let filled = 0;
    while (filled < bytes.length) {
      const count = readSync(descriptor, bytes, filled, bytes.length - filled, filled);
      if (count === 0) throw new CheckpointError(file, "became shorter while it was read");
      filled += count;
    }
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Counts brackets outside strings. The input need not be valid JSON; the parser checks that afterwards. */
function nestsTooDeep(bytes: Uint8Array): boolean {
  const quote = 0x22;
  const backslash = 0x5c;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (inString) {
      if (byte === backslash) i++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > MAX_DEPTH) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}
