// Reads log-probabilities from a completion. With `return_tokens_as_token_ids` the keys are "token_id:N", the sampled
// token first. The order inside TokenLogprobs is the embedded engine's: best first, equal ones by id.

import type { SamplingParams } from "../../sampling/sampling-params.ts";
import type { LikelyToken, Preference, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { NotExpressible } from "./structured-outputs.ts";

export interface WireLogprobs {
  token_logprobs: readonly (number | null)[];
  top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
}

export interface WirePromptLogprob {
  logprob: number;
  rank: number | null;
}

const KEY_PREFIX = "token_id:";

/** Position `at` of a chunk, whose sampled token is `id`. */
export function outputLogprobs(
  wire: WireLogprobs,
  at: number,
  id: number,
  { logprobs: k, logprobTokenIds }: Pick<SamplingParams, "logprobs" | "logprobTokenIds">,
): TokenLogprobs {
  const logprob = wire.token_logprobs[at] ?? Number.NEGATIVE_INFINITY;
  const found = wire.top_logprobs[at] ?? {};
  if (logprobTokenIds !== null) {
    const topLogprobs = logprobTokenIds.map((other) => (other === id ? logprob : logprobOf(found, other)));
    return { logprob, rank: null, topIds: logprobTokenIds, topLogprobs };
  }
  const ids: number[] = [];
  const values: number[] = [];
  for (const key in found) {
    const other = Number(key.slice(KEY_PREFIX.length));
    if (other !== id) {
      ids.push(other);
      values.push(found[key]!);
    }
  }
  // Beside the sampled token there are k others, or fewer when it is one of the k most likely itself.
  if (k === -1 || ids.length < k!) insertByRank(ids, values, id, logprob);
  return { logprob, rank: null, topIds: ids, topLogprobs: values };
}

function logprobOf(found: Readonly<Record<string, number>>, id: number): number {
  const value = found[KEY_PREFIX + id];
  if (value === undefined) throw new NotExpressible("logprob_token_ids");
  return value;
}

function insertByRank(ids: number[], values: number[], id: number, logprob: number): void {
  let at = ids.length;
  while (at > 0 && (values[at - 1]! < logprob || (values[at - 1] === logprob && ids[at - 1]! > id))) at--;
  ids.splice(at, 0, id);
  values.splice(at, 0, logprob);
}

/** How token `id` and the first token of a completion relate to the tokens that were legal: a bitset, null = all. */
export function preferenceOf({ top_logprobs }: WireLogprobs, id: number, legal: Int32Array | null): Preference {
  const found = top_logprobs[0] ?? {};
  const likeliest: Record<"legal" | "illegal", LikelyToken | null> = { legal: null, illegal: null };
  let legalMass = 0;
  for (const key in found) {
    const token = { id: Number(key.slice(KEY_PREFIX.length)), logprob: found[key]! };
    const isLegal = legal === null || ((legal[token.id >>> 5] ?? 0) & (1 << (token.id & 31))) !== 0;
    if (isLegal) legalMass += Math.exp(token.logprob);
    const kind = isLegal ? "legal" : "illegal";
    const best = likeliest[kind];
    const isBetter = best === null || token.logprob > best.logprob;
    if (isBetter || (token.logprob === best.logprob && token.id < best.id)) likeliest[kind] = token;
  }
  const logprob = found[KEY_PREFIX + id];
  if (logprob === undefined) throw new Error(`no log-probability for token ${id}`);
  const { legal: likeliestLegal, illegal: likeliestIllegal } = likeliest;
  return { logprob, legalMass: Math.min(1, legalMass), likeliestLegal, likeliestIllegal };
}

/**
 * Prompt positions: an object keyed by id for each. Keys that look like numbers lose their order in JSON, but each
 * entry has its rank. The prompt's own token has no place among the k if all ranks up to k are taken by others.
 */
export function promptLogprobs(
  wire: readonly (Readonly<Record<string, WirePromptLogprob>> | null)[],
  promptTokenIds: readonly number[],
  k: number,
): (TokenLogprobs | null)[] {
  return promptTokenIds.map((id, position) => {
    const entries = wire[position] ?? null;
    if (position === 0 || entries === null) return null;
    const own = entries[id];
    if (own === undefined) throw new Error(`no log-probability for prompt token ${position}`);
    const others = Object.entries(entries)
      .filter(([key]) => Number(key) !== id)
      .sort(([, a], [, b]) => (a.rank ?? 0) - (b.rank ?? 0));
    const topIds = others.map(([key]) => Number(key));
    const topLogprobs = others.map(([, { logprob }]) => logprob);
    if (k === -1 || topIds.length < k) {
      const gap = others.findIndex(([, { rank }], i) => rank !== i + 1);
      topIds.splice(gap < 0 ? topIds.length : gap, 0, id);
      topLogprobs.splice(gap < 0 ? topLogprobs.length : gap, 0, own.logprob);
    }
    return { logprob: own.logprob, rank: own.rank, topIds, topLogprobs };
  });
}
