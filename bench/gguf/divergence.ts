// How far two engines are apart on the same tokens.

import { argmax } from "../../test/reference/runner-driver.ts";

export interface Divergence {
  positions: number;
  /** Of the second from the first, in nats. */
  meanKl: number;
  largestKl: number;
  /** Share of positions with the same most likely token. */
  sameChoice: number;
}

/** Rows of log-probabilities, one for each position. */
export function divergence(from: readonly Float64Array[], to: readonly Float64Array[]): Divergence {
  if (from.length !== to.length) throw new Error(`${from.length} positions against ${to.length}`);
  const each = from.map((row, i) => klOf(row, to[i]!));
  const same = from.filter((row, i) => argmax(row) === argmax(to[i]!)).length;
  return {
    positions: each.length,
    meanKl: each.reduce((sum, kl) => sum + kl, 0) / each.length,
    largestKl: Math.max(...each),
    sameChoice: same / each.length,
  };
}

/** How many tokens two lists begin with in common. */
export function commonLength(a: readonly number[], b: readonly number[]): number {
  const end = a.findIndex((token, i) => token !== b[i]);
  return end === -1 ? a.length : end;
}

function klOf(p: Float64Array, q: Float64Array): number {
  if (p.length !== q.length) throw new Error(`a vocabulary of ${p.length} tokens against one of ${q.length}`);
  return p.reduce((sum, logprob, id) => sum + Math.exp(logprob) * (logprob - q[id]!), 0);
}
