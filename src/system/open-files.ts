// How many files and sockets this process may have open.
import { readFileSync } from "node:fs";

/** Known on Linux only; elsewhere there is no bound to respect. */
export function mostOpenFiles(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
