// Chooses the replica for a request: the one with the least estimated work in tokens, the request's own included.
// Replicas of nearly the same cost are told apart by the beginning of the prompt, so that requests that begin alike meet
// on one replica even before any of them is known there.

import { RunningHash } from "./prefix-index.ts";
import type { ReplicaLoad } from "./replica.ts";

/** Decoding a choice to its end, compared with computing prompt tokens. */
export const CHOICE_TOKENS = 64;
/** Loading an adapter, in the same unit. */
const ADAPTER_TOKENS = 2048;
/** Costs that differ by less than this fraction count as equal. */
const NEAR = 0.1;

/** A replica that could take the request. */
export interface Candidate {
  /** Unique. */
  name: string;
  /** Prompt tokens that it would have to compute. */
  uncomputed: number;
  /** Estimated tokens of the work it has. */
  busy: number;
  hasAdapter: boolean;
}

export function costOf({ uncomputed, busy, hasAdapter }: Candidate): number {
  return uncomputed + busy + (hasAdapter ? 0 : ADAPTER_TOKENS);
}

/** `key`: a hash of the prompt's beginning. null when there is no candidate. */
export function choose<T extends Candidate>(candidates: readonly T[], key: number): T | null {
  const limit = Math.min(...candidates.map(costOf)) * (1 + NEAR);
  let best: { candidate: T; draw: number } | null = null;
  for (const candidate of candidates) {
    if (costOf(candidate) > limit) continue;
    const draw = drawOf(candidate.name, key);
    if (best === null || draw > best.draw) best = { candidate, draw };
  }
  return best?.candidate ?? null;
}

function drawOf(name: string, key: number): number {
  const hash = new RunningHash(name);
  hash.add(key);
  hash.add(Math.floor(key / 2 ** 32));
  return hash.value;
}

/** Our own work on a replica. */
export interface OwnWork {
  choices: number;
  /** Choices among them that were started at or after this time. */
  startedSince(time: number): number;
  /** Prompt tokens of these choices that are not computed yet. */
  uncomputed: number;
}

/**
 * Estimated tokens of a replica's work. Reports are old and name no owner: what we started since is added, so that
 * several servers do not all choose the replica that was idle a moment ago.
 */
export function busyTokens(own: OwnWork, load: ReplicaLoad | null): number {
  const reported = load === null ? 0 : load.requests + own.startedSince(load.at);
  return own.uncomputed + CHOICE_TOKENS * Math.max(own.choices, reported);
}
