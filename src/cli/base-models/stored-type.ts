// The type of a checkpoint's values as its config.json says it: bfloat16, float16, float32.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../json/json-object.ts";

/** null = it does not say, or there is no such file (a GGUF file has many types). */
export function storedType(folder: string): string | null {
  const file = join(folder, "config.json");
  if (!existsSync(file)) return null;
  const config: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isJsonObject(config)) return null;
  const inner = isJsonObject(config.text_config) ? config.text_config : {};
  const type = config.dtype ?? config.torch_dtype ?? inner.dtype ?? inner.torch_dtype;
  return typeof type === "string" ? type : null;
}
