// Priority and CPU time of a single thread. Linux keeps both per thread. On other systems, or where /proc is hidden,
// neither is available and callers fall back to wall-clock time.

import { readFileSync, readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Clock ticks per second in /proc. The same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Lowers the calling thread's priority. Returns the id that `threadCpuMs` takes, or null. */
export function yieldToOthers(): number | null {
  if (process.platform !== "linux") return null;
  try {
    const thread = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    return thread;
  } catch {
    return null; // no /proc, or a sandbox forbids it: the thread keeps its priority
  }
}

/** CPU milliseconds that a thread of this process has used so far; null if unknown. */
export function threadCpuMs(thread: number | null): number | null {
  if (thread === null) return null;
  try {
    const fields = readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return null; // the thread has ended
  }
}
