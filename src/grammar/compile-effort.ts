// Counts the work of a compilation, so that a constraint is refused for what it is and not for how busy the machine was:
// the same constraint always gets the same verdict. A compilation is synchronous, so there is one count at a time.

import { readFileSync, readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { GrammarError } from "./grammar-error.ts";

/** Units of roughly 0.1 to 0.2 µs: some seconds. */
const MAX_EFFORT = 20_000_000;

let left = Number.POSITIVE_INFINITY;

/** Does the work, or throws a GrammarError when it takes too much of it. */
export function withinEffort<T>(work: () => T): T {
  left = MAX_EFFORT;
  try {
    return work();
  } finally {
    left = Number.POSITIVE_INFINITY;
  }
}

/** Called wherever a constraint can cause much work. */
export function spendEffort(units: number): void {
  left -= units;
  if (left < 0) {
    throw new GrammarError(
      "the constraint is too complex: it takes too much work to compile; use fewer alternatives or properties, smaller counts, or a property with a constant in each object of a oneOf",
    );
  }
}

// Priority and CPU time of a single thread. Linux keeps both per thread. On other systems, or where /proc is hidden,
// neither is available and callers fall back to wall-clock time.

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
