// Two lists of log-probabilities, compared bit for bit.
import type { Token } from "./tokens.ts";

export interface ReplayResult {
  same: number;
  total: number;
  /** The first token that is not the same; null if all are. */
  firstDifference: { at: number; sampled: number; again: number | null } | null;
}

export function compareBits(
  sampled: readonly Pick<Token, "id" | "logprob">[],
  again: readonly Pick<Token, "id" | "logprob">[],
): ReplayResult {
  const isSame = (i: number) => sampled[i]!.id === again[i]?.id && Object.is(sampled[i]!.logprob, again[i]?.logprob);
  const differing = sampled.findIndex((_token, i) => !isSame(i));
  const same = sampled.filter((_token, i) => isSame(i)).length;
  if (differing < 0) return { same, total: sampled.length, firstDifference: null };
  const { logprob } = sampled[differing]!;
  const first = { at: differing, sampled: logprob, again: again[differing]?.logprob ?? null };
  return { same, total: sampled.length, firstDifference: first };
}

/** What may have made the first token that is not the same; no more is known here. */
export function whyDifferent({ sampled, again }: NonNullable<ReplayResult["firstDifference"]>): string {
  if (again === null) return "There are fewer tokens now.";
  return sampled > again
    ? "It was likelier when it was sampled: a constraint had left fewer tokens, or other weights wrote it."
    : "Other weights or another precision wrote it, or its tokens were changed.";
}
