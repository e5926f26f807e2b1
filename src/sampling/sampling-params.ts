// The controls of one request that decide how a token is chosen and when a choice ends.

import type { ThinkingLimit } from "./thinking-budget.ts";

/** All fields are final: the caller has applied defaults. */
export interface SamplingParams {
  /** 0 = greedy. The caller has raised values in (0, 0.01) to 0.01. */
  temperature: number;
  /** 0 = off. */
  topK: number;
  /** (0, 1]; 1 = off. */
  topP: number;
  /** [0, 1]; 0 = off. */
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  /** [token id, additive bias] pairs. */
  logitBias: readonly (readonly [number, number])[];
  /** null = every token; never empty. */
  allowedTokenIds: readonly number[] | null;
  /** Token sequences that must not be completed in the output. */
  badWords: readonly (readonly number[])[];
  /** The texts that `badWords` spells, for engines that tokenise them themselves. */
  badWordTexts: readonly string[];
  minTokens: number;
  /** Output budget per choice, already clamped to the context. */
  maxTokens: number;
  /** The tokenizer's EOS: ends with stop reason null. null = the model has none. */
  eosTokenId: number | null;
  /** Other ids that end the choice, with stop reason = the id (the user's, plus extra EOS ids unless ignoreEos). */
  stopTokenIds: readonly number[];
  /** Ids masked until minTokens were produced, even under ignoreEos: EOS, extra EOS ids, the user's stop ids. */
  minTokensMask: readonly number[];
  ignoreEos: boolean;
  /** null = unseeded. Choice i uses seed + i. Signed 64-bit. */
  seed: bigint | null;
  /** null = none; k >= 0 = the sampled token plus the k most likely; -1 = the whole vocabulary. */
  logprobs: number | null;
  /** Report these ids instead of the most likely ones; null = the most likely ones. */
  logprobTokenIds: readonly number[] | null;
  /** The same for prompt positions 1 and later. The request then does not read the prefix cache. */
  promptLogprobs: number | null;
  repetitionDetection: RepetitionDetection | null;
  /** null = thoughts may be of any length. */
  thinking: ThinkingLimit | null;
}

export interface RepetitionDetection {
  maxPatternSize: number;
  minPatternSize: number;
  minCount: number;
}
