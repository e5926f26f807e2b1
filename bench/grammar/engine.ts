// What the benchmark asks of a structured-output engine. Each engine runs in a process of its own: one that hangs or
// crashes on a schema is ended and started again.

import type { VocabularyName } from "./vocabulary.ts";

export const ENGINES = ["flywheel", "xgrammar"] as const;
export type EngineName = (typeof ENGINES)[number];

export interface EngineOptions {
  vocabulary: VocabularyName;
  /** Settings of the JSON translation that replace Flywheel's defaults. */
  jsonOptions: Readonly<Record<string, unknown>>;
}

export interface Job {
  /** JSON text. */
  schema: string;
  /** JSON texts to follow token by token. */
  instances: readonly string[];
}

export type Verdict =
  | {
      compiled: true;
      /** CPU time of the process until the first mask can be asked for. */
      compileMs: number;
      /** Per instance. */
      accepted: readonly boolean[];
      /** Mask and accept, per token. */
      microseconds: Float32Array;
      /** Why an instance could not be followed to its end, other than an illegal token. */
      broken: string | null;
    }
  | { compiled: false; compileMs: number; reason: string };

export interface GrammarEngine {
  measure(job: Job): Promise<Verdict>;
}

/** Starts measuring; the result is the CPU time of this process since then. */
export function startCpuClock(): () => number {
  const start = cpuMicroseconds();
  return () => (cpuMicroseconds() - start) / 1000;
}

/** Times steps that follow each other. */
export class StepTimer {
  readonly microseconds: number[] = [];
  #wall = 0;
  #cpu = 0;

  start(): void {
    this.#cpu = cpuMicroseconds();
    this.#wall = performance.now();
  }

  /** Adds wall time, or CPU time where that is less: a busy machine takes the core away in the middle of a step. */
  end(): void {
    const wall = (performance.now() - this.#wall) * 1000;
    this.microseconds.push(Math.min(wall, Math.max(1, cpuMicroseconds() - this.#cpu)));
  }
}

function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
