// The sampled tokens of a sequence beside what a step makes of them.
import { compareBits, type ReplayResult } from "../playground/bits.ts";
import type { Sequence, TokenNumbers } from "./records.ts";

export interface ScoredAgain {
  /** The places count from the first token of the sequence. */
  compared: ReplayResult;
  /** Of the sampled tokens: how likely each is under the step, and over how likely it was when sampled. */
  numbers: TokenNumbers["sequences"][number];
}

/** `again`: every token of the sequence. */
export function comparedWith(
  { tokens, mask, logprobs }: Sequence,
  again: readonly { id: number; logprob: number }[],
  sequence: number,
): ScoredAgain | null {
  const positions = mask.flatMap((bit, i) => (bit === 1 && logprobs[i] !== null ? [i] : []));
  if (positions.length === 0) return null;
  const sampled = positions.map((i) => ({ id: tokens[i]!, logprob: logprobs[i]! }));
  const now = positions.map((i) => again[i]!);
  const { firstDifference: first, ...counts } = compareBits(sampled, now);
  const values = {
    under: now.map(({ logprob }) => logprob),
    ratio: now.map(({ logprob }, row) => Math.exp(logprob - sampled[row]!.logprob)),
  };
  const firstDifference = first === null ? null : { ...first, at: positions[first.at]! };
  return { compared: { ...counts, firstDifference }, numbers: { sequence, positions, values } };
}
