// CPU clocks that a busy machine does not falsify.

import { openSync, readSync } from "node:fs";

/** Starts measuring; the result is the CPU time of this process since then, all its threads included. */
export function startCpuClock(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
}

/** Times short steps on the main thread, in microseconds. */
export class StepTimer {
  readonly microseconds: number[] = [];
  #wall = 0;
  #cpu = 0;

  start(): void {
    this.#cpu = threadMicroseconds();
    this.#wall = performance.now();
  }

  /** Adds wall time, or CPU time where that is less: another program may have had the core in the middle of a step. */
  end(): void {
    const wall = (performance.now() - this.#wall) * 1000;
    this.microseconds.push(Math.min(wall, threadMicroseconds() - this.#cpu));
  }
}

const TEXT = Buffer.alloc(64);
const FILE = openThreadFile();

/** CPU time of the main thread so far. Elsewhere than on Linux the time on the wall. */
function threadMicroseconds(): number {
  if (FILE === null) return performance.now() * 1000;
  process.cpuUsage(); // makes the kernel bring the file up to date
  const length = readSync(FILE, TEXT, 0, TEXT.length, 0);
  return Number.parseInt(TEXT.toString("latin1", 0, length), 10) / 1000;
}

function openThreadFile(): number | null {
  try {
    return openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
  } catch {
    return null;
  }
}
