// Wall time, CPU time and memory of this process. CPU time counts all threads, including busy waiting.

import { readFileSync } from "node:fs";
import type { Memory } from "./child-messages.ts";

export interface Lap {
  tokens: number;
  seconds: number;
  /** NaN: not known. */
  cpuSeconds: number;
}

/** Starts a lap. Call the result to end it. */
export function startLap(): (tokens: number) => Lap {
  const cpu = process.cpuUsage();
  const start = performance.now();
  return (tokens) => {
    const seconds = (performance.now() - start) / 1e3;
    const { user, system } = process.cpuUsage(cpu);
    return { tokens, seconds, cpuSeconds: (user + system) / 1e6 };
  };
}

export function memory(): Memory {
  return { residentBytes: process.memoryUsage.rss(), peakBytes: peakBytes() };
}

/**
 * Peak memory of this process. On Linux, `maxRSS` includes the parent's memory at the time of the fork, so this reads
 * `VmHWM` instead.
 */
function peakBytes(): number {
  if (process.platform === "linux") {
    const line = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"));
    if (line !== null) return Number(line[1]) * 1024;
  }
  return process.resourceUsage().maxRSS * 1024;
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("no values to take the median of");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
