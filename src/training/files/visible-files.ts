// Waits for the files of a step. On a shared folder they may become visible seconds after another server has written
// them: network file systems remember for a while what was not there.

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hasFile } from "./has-file.ts";

const FILES = ["adapter_config.json", "adapter_model.safetensors"];
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 8000;

/** Resolves to whether the adapter in this folder can be seen, at once if it can. Rejects when `signal` aborts. */
export async function becomesVisible(folder: string, patienceMs: number, signal?: AbortSignal): Promise<boolean> {
  const until = performance.now() + patienceMs;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    if (FILES.every((name) => hasFile(join(folder, name)))) return true;
    const left = until - performance.now();
    if (left <= 0) return false;
    await delay(Math.min(wait, left), undefined, signal ? { signal } : {});
  }
}
