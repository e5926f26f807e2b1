// The thread that tokenises long texts for text/encoding/encoder-thread.ts: it reads the tokenizer of the served model and
// takes one text at a time.

import { parentPort, workerData } from "node:worker_threads";
import type { EncodeJob, EncodeMessage } from "../text/encoding/encoder-thread.ts";
import { HfTokenizer } from "../text/hf-tokenizer.ts";
import { readModelText } from "./model-files.ts";

const { folder } = workerData as { folder: string };
const tokenizer = new HfTokenizer(await readModelText(folder));

function answer(message: EncodeMessage, moved: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, moved);
}

parentPort?.on("message", ({ text, options }: EncodeJob) => {
  try {
    const ids = Int32Array.from(tokenizer.encode(text, options));
    answer({ ids }, [ids.buffer]);
  } catch (error) {
    answer({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
});
answer({ ready: true });
