// Wall time and CPU time of this process between two moments, and its memory. CPU time is that of all its threads,
// waiting in a busy loop included.

import { readFileSync } from "node:fs";
import type { Memory } from "./child-messages.ts";

export interface Lap {
  tokens: number;
  seconds: number;
  cpuSeconds: number;
}

/** Starts measuring; the result ends the lap. */
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
 * The most memory this process ever held. Linux counts what the parent held when it forked into `maxRSS`, so the
 * mark of this program alone is read instead.
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
