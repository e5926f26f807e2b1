// The counters of a fleet: the sum over its replicas, and the mean use of their cache.

import type { EngineStats } from "../contract.ts";
import { STAT_NAMES, StatCells } from "../stats.ts";
import type { Member } from "./member.ts";

/** `waiting`: choices that no replica has yet. */
export function sumStats(members: readonly Member[], waiting: number): EngineStats {
  const total = { ...new StatCells().read(), waiting };
  for (const member of members) {
    const stats = statsOf(member);
    for (const name of STAT_NAMES) total[name] += stats[name];
    const { bounds, counts, sum } = total.stepTokens;
    total.stepTokens = {
      bounds,
      counts: counts.map((count, i) => count + stats.stepTokens.counts[i]!),
      sum: sum + stats.stepTokens.sum,
    };
  }
  total.kvUsage /= members.length;
  return total;
}

/** A replica's own numbers, or what was sent to it and came back. */
function statsOf({ replica, choices, counts }: Member): EngineStats {
  if (replica.stats !== undefined) return replica.stats();
  const { promptTokens, generatedTokens, prefixHitTokens } = counts;
  const empty = new StatCells().read();
  return {
    ...empty,
    running: choices,
    promptTokens,
    generatedTokens,
    prefixQueries: promptTokens,
    prefixHits: prefixHitTokens,
  };
}
