// How a checkpoint stores its values, without reading them.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../json/json.ts";
import { BLOCK_FORMATS, isWeightDtype } from "./block-formats.ts";
import { openCheckpoint } from "./checkpoint.ts";
import { CheckpointError } from "./checkpoint-error.ts";

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
