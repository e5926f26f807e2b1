// What every measured engine can do, through the interface that its users call. Every measured step includes choosing the
// most likely token. Each implementation runs in its own process.

import type { Lap } from "../process/stopwatch.ts";

export type Precision = "f32" | "f16" | "int8" | "int4";

export interface ContenderOptions {
  /** The model in this engine's format: a checkpoint folder, a GGUF file, or a folder with an ONNX model. */
  model: string;
  precision: Precision;
  threads: number;
  /** Most tokens held at once, prompts and outputs of all sequences together. */
  totalTokens: number;
}

export interface Contender {
  /** From the prompt to its first token, with nothing cached. The lap counts the prompt's tokens. */
  prefill(prompt: number[]): Promise<Lap>;
  /** Prepares `batch` sequences with the same prompt, each in its own memory. Not measured. */
  prepareDecode(prompt: number[], batch: number, steps: number): Promise<void>;
  /** Decodes `steps` tokens for each of them, after one unmeasured step. Repeatable: it always starts at the prompt's end. */
  decode(): Promise<Lap>;
  finishDecode(): Promise<void>;
  /** Natural log-probability of every token after the first, given the tokens before it; empty if the engine cannot tell. */
  score(tokens: number[]): Promise<number[]>;
  /** The most likely continuation; empty if the engine cannot tell. */
  greedy(prompt: number[], count: number): Promise<number[]>;
}

/** Steps of a decode lap before the clock starts. */
export const WARM_STEPS = 1;
