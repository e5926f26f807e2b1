// Entry of the thread that reads one adapter. See adapter-reader.ts.

import { parentPort, workerData } from "node:worker_threads";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import type { AdapterInfo } from "./adapter-host.ts";
import { loadPeft } from "./peft.ts";

export interface ReadJob {
  folder: string;
  config: ModelConfig;
}

export type ReadResult = AdapterInfo | { problem: string };

if (parentPort === null) throw new Error("model/lora/adapter-reader-worker is the entry of a worker thread");
const { folder, config } = workerData as ReadJob;
let result: ReadResult;
try {
  const { version, rank } = loadPeft(folder, config);
  result = { version, rank };
} catch (error) {
  result = { problem: error instanceof Error ? error.message : String(error) };
}
parentPort.postMessage(result);
