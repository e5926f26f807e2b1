// The content version of an adapter for a model that only other servers know. It hashes the files and checks no tensor.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { AdapterInfo } from "./adapter-host.ts";
import { readPeftConfig } from "./peft-config.ts";

/** Rejects with a message for the user. */
export async function hashAdapter(folder: string): Promise<AdapterInfo> {
  const { rank } = readPeftConfig(folder);
  const hash = createHash("sha256");
  for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
    const file = createHash("sha256");
    await pipeline(createReadStream(join(folder, name)), file);
    hash.update(file.digest());
  }
  return { version: hash.digest("hex"), rank };
}
