// Reads an adapter's version and rank from its files, in a thread of its own: hashing hundreds of megabytes would block
// the main thread for seconds.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Worker } from "node:worker_threads";
import { compiledEntry } from "../../system/package.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { AdapterInfo } from "./adapter-host.ts";
import type { ReadJob, ReadResult } from "./adapter-reader-worker.ts";
import { readPeftConfig } from "./peft-config.ts";

// The content version of an adapter for a model that only other servers know. It hashes the files and checks no tensor.

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

/** Checks every tensor against the model. Rejects with a message for the user. */
export function readAdapter(folder: string, config: ModelConfig): Promise<AdapterInfo> {
  const job: ReadJob = { folder, config };
  const worker = new Worker(compiledEntry(import.meta.url, "./adapter-reader-worker.ts"), { workerData: job });
  return new Promise((resolve, reject) => {
    worker.on("message", (result: ReadResult) => {
      if ("problem" in result) reject(new Error(result.problem));
      else resolve(result);
    });
    worker.on("error", reject);
    worker.on("exit", () => reject(new Error(`${folder} could not be read`)));
  });
}
