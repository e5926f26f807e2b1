// The configuration of a checkpoint as JSON: config.json of a folder, or what stands for it in a GGUF file.

import { join } from "node:path";
import type { JsonObject } from "../../json/json.ts";
import { readGgufConfig } from "../gguf/gguf-config.ts";
import { isGguf } from "../gguf/is-gguf.ts";
import { readJsonObject } from "./json-file.ts";

/** `file` is for error messages. */
export function readConfigJson(path: string): { file: string; json: JsonObject } {
  if (isGguf(path)) return { file: path, json: readGgufConfig(path) };
  const file = join(path, "config.json");
  return { file, json: readJsonObject(file, 16 * 2 ** 20) };
}
