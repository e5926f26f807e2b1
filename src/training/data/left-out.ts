// What the trainer itself left out, put into a job's report. What does not fit is known before a job is planned
// (length-limits.ts), so a trainer that goes by the same limits leaves nothing out; one elsewhere may know others.

import type { TrainerResult } from "../contract.ts";
import type { ExampleReport } from "./prepare-sft.ts";
import type { TokenSequence } from "./token-sequence.ts";
import { type TrajectoryReport, tokenCounts } from "./verdict.ts";

type Entry = TrajectoryReport | ExampleReport;

/** A sequence of the batch and the entry of the report that it belongs to. */
export interface Reported {
  sequence: TokenSequence;
  entry: Entry;
}

/** An entry that lost all its sequences is too long, one that lost some counts the others. Returns how many lost all. */
export function markLeftOut(batch: readonly Reported[], dropped: TrainerResult["dropped"]): number {
  const out = new Set(dropped.map(({ sequence }) => sequence));
  const trained = new Map<Entry, TokenSequence[]>();
  for (const { sequence, reason } of dropped) {
    const { entry } = batch[sequence]!;
    entry.reason = reason;
    trained.set(entry, []);
  }
  for (const [i, { sequence, entry }] of batch.entries()) if (!out.has(i)) trained.get(entry)?.push(sequence);
  let lost = 0;
  for (const [entry, others] of trained) {
    const { sequences, tokens, trainableTokens } = tokenCounts(others);
    if (sequences > 0) Object.assign(entry, { tokens, trainableTokens }, "sequences" in entry ? { sequences } : {});
    else {
      Object.assign(entry, { status: "too_long" }, "advantage" in entry ? { advantage: 0 } : {});
      lost++;
    }
  }
  return lost;
}
