// Log-probabilities as reported: natural logarithms of the raw distribution, with only the grammar mask applied. So
// temperature, penalties, bias and truncation do not change them. The sum over the vocabulary has one fixed order and
// 64-bit sums, so the same row gives the same bits everywhere. -Infinity stays -Infinity.

import { InvalidLogitsError } from "./errors.ts";
import { sortKey } from "./float-order.ts";
import type { LogitRow } from "./row.ts";
import { sharedRow } from "./row.ts";
import { kthLargest } from "./select.ts";
import type { LikelyToken, Preference, TokenLogprobs } from "./token-logprobs.ts";

/** Reports token `id` and others of a scanned row: the k most likely ones (-1 = all), or those named. */
export function tokenLogprobs(row: LogitRow, id: number, others: number | readonly number[]): TokenLogprobs {
  const { values, max } = row;
  const logMass = Math.log(row.unitMass());
  const logprobOf = (token: number) => values[token]! - max - logMass;
  const topIds = typeof others === "number" ? mostLikely(row, others) : others;
  return {
    logprob: logprobOf(id),
    rank: row.countAtLeast(values[id]!),
    topIds,
    topLogprobs: topIds.map(logprobOf),
  };
}

/** Reports prompt token `tokenId`, given the logits of the position before it: a row as long as the vocabulary. */
export function promptTokenLogprobs(logits: Float32Array, tokenId: number, k: number): TokenLogprobs {
  return tokenLogprobs(distribution(logits), tokenId, k);
}

/** The same beside the tokens that were legal there: a bitset, null = all. */
export function promptTokenPreference(logits: Float32Array, tokenId: number, legal: Int32Array | null): Preference {
  const row = distribution(logits);
  const { max } = row;
  const mass = row.unitMass();
  const logMass = Math.log(mass);
  const likeliest = (): LikelyToken | null =>
    row.max === Number.NEGATIVE_INFINITY ? null : { id: row.argmax(), logprob: row.max - max - logMass };
  const logprob = row.values[tokenId]! - max - logMass;
  if (legal === null) return { logprob, legalMass: 1, likeliestLegal: likeliest(), likeliestIllegal: null };
  row.allowOnly(legal);
  row.scan();
  const likeliestLegal = likeliest();
  const legalMass = likeliestLegal === null ? 0 : Math.min(1, (Math.exp(row.max - max) * row.unitMass()) / mass);
  row.load(logits);
  row.allowOnly(complement(legal, logits.length));
  row.scan();
  return { logprob, legalMass, likeliestLegal, likeliestIllegal: likeliest() };
}

function distribution(logits: Float32Array): LogitRow {
  const row = sharedRow(logits.length);
  row.load(logits);
  row.scan();
  if (row.max === Number.NEGATIVE_INFINITY) throw new InvalidLogitsError("nothing but -Infinity");
  return row;
}

/** Tokens that a bitset does not hold; it may end early. */
function complement(set: Int32Array, vocabSize: number): Int32Array {
  return Int32Array.from({ length: Math.ceil(vocabSize / 32) }, (_, word) => ~(set[word] ?? 0));
}

/** The `wanted` largest entries (-1 = all), best first, equal ones by id. */
function mostLikely(row: LogitRow, wanted: number): number[] {
  if (wanted === 0) return [];
  const k = wanted === -1 ? row.vocabSize : Math.min(wanted, row.vocabSize);
  const { values } = row;
  const { value, above } = kthLargest(row, k, Number.NEGATIVE_INFINITY)!;
  const key = sortKey(value);
  const better = [...row.gather(key + 1, sortKey(row.max), above)];
  better.sort((a, b) => values[b]! - values[a]! || a - b);
  return [...better, ...row.gather(key, key, k - above)];
}
