// Decides whether a choice ends with the token just appended, and why. Stop strings belong to the text layer. The first
// rule that applies is reported: min_tokens, EOS, other stop ids, budget, repetition. The caller has clamped the budget
// (maxTokens) to the context, so the context length needs no check here.

import type { RepetitionDetection, SamplingParams } from "../sampling/sampling-params.ts";
import type { Finish } from "./contract.ts";

/** `output` holds the tokens of the choice, newest last. null = the choice goes on. */
export function checkFinish(params: SamplingParams, output: readonly number[]): Finish | null {
  const token = output.at(-1);
  if (token === undefined || output.length < params.minTokens) return null;
  if (token === params.eosTokenId && !params.ignoreEos) return { reason: "stop", stopReason: null };
  if (params.stopTokenIds.includes(token)) return { reason: "stop", stopReason: token };
  if (output.length >= params.maxTokens) return { reason: "length", stopReason: null };
  if (params.repetitionDetection !== null && endsInRepetition(output, params.repetitionDetection)) {
    return { reason: "repetition", stopReason: "repetition_detected" };
  }
  return null;
}

/**
 * Whether the output ends in `minCount` copies of a pattern of minPatternSize..maxPatternSize tokens.
 * Linear in the window the longest pattern needs, also for hostile outputs that nearly repeat at every size.
 */
export function endsInRepetition(output: readonly number[], detection: RepetitionDetection): boolean {
  const { minPatternSize, maxPatternSize, minCount } = detection;
  if (maxPatternSize < 1 || minCount < 2) return false;
  const smallest = Math.max(1, minPatternSize);
  const largest = Math.min(maxPatternSize, Math.floor(output.length / minCount));
  if (smallest > largest) return false;

  // Z-function of the reversed output: matches[i] = how many tokens before the end equal those i further back.
  const window = largest * minCount;
  const last = output.length - 1;
  const matches = matchScratch(largest + 1);
  let [start, end] = [0, 0];
  for (let i = 1; i <= largest; i++) {
    let length = i < end ? Math.min(end - i, matches[i - start]!) : 0;
    while (i + length < window && output[last - length] === output[last - length - i]) length++;
    matches[i] = length;
    if (i + length > end) [start, end] = [i, i + length];
    // In n copies of a pattern, the last n - 1 equal the tokens one pattern earlier.
    if (i >= smallest && length >= i * (minCount - 1)) return true;
  }
  return false;
}

let scratch = new Int32Array(0);

function matchScratch(size: number): Int32Array {
  if (scratch.length < size) scratch = new Int32Array(2 * size);
  return scratch;
}
