// Reads an adapter's version and rank from its files, in a thread of its own: hashing hundreds of megabytes would block
// the main thread for seconds.

import { Worker } from "node:worker_threads";
import { compiledEntry } from "../../system/package.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { AdapterInfo } from "./adapter-host.ts";
import type { ReadJob, ReadResult } from "./adapter-reader-worker.ts";

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
