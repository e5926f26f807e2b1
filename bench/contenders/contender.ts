// What every measured engine can do. All of it goes through the interface that engine's users call; choosing the most
// likely token is part of every measured step, on all sides. Implementations are in contenders/, one process each.

import type { Lap } from "../process/stopwatch.ts";

export type Precision = "f32" | "f16" | "int8" | "int4";

export interface ContenderOptions {
  /** The model in the form this engine reads: a checkpoint folder, a GGUF file, a folder with an ONNX model. */
  model: string;
  precision: Precision;
  threads: number;
  /** The most tokens of prompts and outputs, of all sequences together, that will be held at once. */
  totalTokens: number;
}

export interface Contender {
  /** From the prompt to its first token, nothing remembered from before. The lap counts the prompt's tokens. */
  prefill(prompt: number[]): Promise<Lap>;
  /** Lays `batch` sequences with the same prompt into memory of their own. Not measured. */
  prepareDecode(prompt: number[], batch: number, steps: number): Promise<void>;
  /** `steps` tokens for each of them, after one that is not measured. Repeatable: always from the prompt's end. */
  decode(): Promise<Lap>;
  finishDecode(): Promise<void>;
  /** Natural log-probability of every token but the first, given those before it. */
  score(tokens: number[]): Promise<number[]>;
  /** The most likely continuation. */
  greedy(prompt: number[], count: number): Promise<number[]>;
}

/** Steps of a decode lap that are run before the clock starts. */
export const WARM_STEPS = 1;
