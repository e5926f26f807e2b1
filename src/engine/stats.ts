// Engine counters as numbers in a typed array: the engine thread adds to them in place and, when the array is backed
// by shared memory, the main thread reads them at any time without a message. Counters survive a worker restart
// because the same memory is handed to the next worker.

import type { EngineStats } from "./contract.ts";

const NAMES = [
  "running",
  "waiting",
  "kvUsage",
  "preemptions",
  "prefixQueries",
  "prefixHits",
  "promptTokens",
  "generatedTokens",
  "steps",
] as const satisfies readonly (keyof EngineStats)[];

type StatName = (typeof NAMES)[number];

const INDEX = Object.fromEntries(NAMES.map((name, i) => [name, i])) as Record<StatName, number>;

export class StatCells {
  readonly memory: SharedArrayBuffer;
  private readonly cells: Float64Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(NAMES.length * 8)) {
    this.memory = memory;
    this.cells = new Float64Array(memory);
  }

  add(name: StatName, amount: number): void {
    this.cells[INDEX[name]]! += amount;
  }

  set(name: StatName, value: number): void {
    this.cells[INDEX[name]] = value;
  }

  read(): EngineStats {
    const stats = {} as Record<StatName, number>;
    for (const name of NAMES) stats[name] = this.cells[INDEX[name]]!;
    return stats;
  }
}
