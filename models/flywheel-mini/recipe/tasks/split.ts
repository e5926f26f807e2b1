// Decides what is held out. The hash of a key (a pair of numbers, a name, the whole user text) puts it on one side, so the two
// sides are disjoint by construction for every seed.

import { hash32, type Rng } from "./rng.ts";

export type Split = "train" | "heldout";

/** 1 in 8 keys is held out. */
export function splitOf(key: string): Split {
  return hash32(`split/${key}`) % 8 === 0 ? "heldout" : "train";
}

/** What a family needs to draw one conversation. */
export interface Draw {
  rng: Rng;
  split: Split;
}

/** An element whose key is on the draw's side. A list needs some dozens of entries to cover both sides. */
export function pickContent<T>(draw: Draw, list: readonly T[], key: (item: T) => string = String): T {
  for (let i = 0; i < 400; i++) {
    const item = draw.rng.pick(list);
    if (splitOf(key(item)) === draw.split) return item;
  }
  throw new Error(`no ${draw.split} entry among ${list.length} (first: ${key(list[0] as T)})`);
}

/**
 * A wording from a list. Every sixth is withheld from training. Half of the held-out conversations use a withheld one, the rest
 * a known one. Their content is new in any case.
 */
export function pickWording<T>(draw: Draw, list: readonly T[]): T {
  if (list.length < 6) return draw.rng.pick(list);
  const wantKept = draw.split === "heldout" && draw.rng.chance(0.5);
  for (;;) {
    const index = draw.rng.int(0, list.length - 1);
    if ((index % 6 === 5) === wantKept) return list[index] as T;
  }
}
