// Priority and CPU time of a single thread. Linux keeps both per thread; on other systems, and where /proc is hidden,
// neither is known and callers fall back to the clock on the wall.

import { readFileSync, readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Ticks of /proc per second, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Makes the calling thread run after the others. Returns the number by which `threadCpuMs` knows it, or null. */
export function yieldToOthers(): number | null {
  if (process.platform !== "linux") return null;
  try {
    const thread = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    return thread;
  } catch {
    return null; // no /proc, or a sandbox that forbids it: the thread runs like any other
  }
}

/** CPU milliseconds a thread of this process has used so far; null when that is not known. */
export function threadCpuMs(thread: number | null): number | null {
  if (thread === null) return null;
  try {
    const fields = readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return null; // the thread has ended
  }
}
