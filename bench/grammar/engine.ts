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
