// Draws one token: inverse CDF over the entries at or above a floor, restricted to the top_p nucleus. The nucleus is
// never listed. A token is drawn from a superset of it, and kept if it belongs: if all more likely tokens together hold
// less than topP of the mass. If it does not belong, no less likely token does, and the next draw is among the more
// likely ones. So one more pass decides most draws; finding the edge of the nucleus would take several.

import { keyToFloat, sortKey } from "./float-order.ts";
import type { LogitRow } from "./row.ts";

/** The attempt-th uniform number in [0, 1) of this draw. */
export type Uniforms = (attempt: number) => number;

/** Draws a token with logit >= floor from a scanned row, by softmax at this temperature within the nucleus. topP 1 = off. */
export function drawToken(row: LogitRow, temperature: number, topP: number, floor: number, uniforms: Uniforms): number {
  let cut = floor;
  let mass = row.weigh(temperature, floor);
  const target = topP * mass;
  for (let attempt = 0; ; attempt++) {
    const id = row.tokenAt(uniforms(attempt) * mass, cut);
    if (topP === 1) return id;
    const key = sortKey(row.values[id]!);
    const next = keyToFloat(key + 1);
    const above = row.massFrom(next);
    if (above >= target) {
      cut = next;
      mass = above;
      continue;
    }
    // Among equal entries, lower ids count as more likely, so perhaps only the first few belong.
    const weight = row.weightOf(id);
    const kept = Math.min(row.vocabSize, Math.max(1, Math.ceil((target - above) / weight)));
    if (row.equalBefore(id) < kept) return id;
    // One beyond the edge. Now the nucleus is known: the entries above, and these.
    const point = uniforms(attempt + 1) * (above + kept * weight);
    if (point < above) return row.tokenAt(point, next);
    const place = Math.min(kept - 1, Math.floor((point - above) / weight));
    return row.gather(key, key, place + 1)[place]!;
  }
}
