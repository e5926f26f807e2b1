// Which records of jobs have to go: those that are too old, then the oldest until the rest is small enough.

import type { RecordSize } from "../files/record-files.ts";

export interface RecordBound {
  /** Of all records of one workspace; 0 = keep none. */
  bytes: number;
  /** Since the job was sent. */
  ms: number;
}

/** `records`: of one workspace. `now`: milliseconds since 1970. */
export function beyondBound(records: readonly RecordSize[], bound: RecordBound, now: number): RecordSize[] {
  const newestFirst = [...records].sort((a, b) => b.at - a.at);
  let total = 0;
  return newestFirst.filter(({ at, bytes }) => {
    total += bytes;
    return total > bound.bytes || at <= now - bound.ms;
  });
}
