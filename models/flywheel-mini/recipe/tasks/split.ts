// Which side of the train / held-out line something belongs to. A key (a pair of numbers, a name, the whole user
// text) is held out when its hash says so, so that both sides are disjoint by construction whatever the seed.

import { hash32, type Rng } from "./rng.ts";

export type Split = "train" | "heldout";

/** 1 in 8 keys is held out. */
export function splitOf(key: string): Split {
  return hash32(`split/${key}`) % 8 === 0 ? "heldout" : "train";
}

/** What a family needs to make one conversation. */
export interface Draw {
  rng: Rng;
  split: Split;
}

/** An element whose own key is on the draw's side. Lists need some dozens of entries to have both sides. */
export function pickContent<T>(draw: Draw, list: readonly T[], key: (item: T) => string = String): T {
  for (let i = 0; i < 400; i++) {
    const item = draw.rng.pick(list);
    if (splitOf(key(item)) === draw.split) return item;
  }
  throw new Error(`no ${draw.split} entry among ${list.length} (first: ${key(list[0] as T)})`);
}

/**
 * A wording from a list: every sixth one is kept from training. Held-out conversations use a kept one half of the
 * time and a known one otherwise (their content is new in any case).
 */
export function pickWording<T>(draw: Draw, list: readonly T[]): T {
  if (list.length < 6) return draw.rng.pick(list);
  const wantKept = draw.split === "heldout" && draw.rng.chance(0.5);
  for (;;) {
    const index = draw.rng.int(0, list.length - 1);
    if ((index % 6 === 5) === wantKept) return list[index] as T;
  }
}
