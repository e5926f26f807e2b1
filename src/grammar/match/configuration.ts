// A configuration is a set of items, each a state set and a stack: all that the grammar considers possible after some
// text, closed under links, calls and returns. It caches what is known about it: its successors, its token mask, and the
// characters in which it is free (see free-text.ts).

import type { CharacterSet } from "./character-slices.ts";
import type { Items, StackNode } from "./stack-graph.ts";

export class Configuration {
  /** The items that can consume a byte, at most one for a node. */
  readonly items: Items;
  /** The items before closing: they determine everything else. */
  readonly kernel: Items;
  /** The whole text may end here. */
  readonly accepting: boolean;
  /** The frame may end here and return to its unknown caller (see token-masks.ts). */
  readonly escaped: boolean;
  /** Per byte class; null = no continuation. */
  next: (Configuration | null | undefined)[] = [];
  epoch: number;
  mask: Int32Array | null = null;
  /** See free-text.ts; undefined = not known yet. */
  freedom: Freedom | null | undefined;
  sustained: CharacterSet | null | undefined;

  constructor(kernel: Items, closed: Items & { accepting: boolean; escaped: boolean }, epoch: number) {
    this.kernel = kernel;
    this.items = closed;
    this.accepting = closed.accepting;
    this.escaped = closed.escaped;
    this.epoch = epoch;
  }

  holds(state: number, node: StackNode): boolean {
    return this.items.nodes.some((each, index) => each === node && this.items.sets[index]!.states.includes(state));
  }

  /** Nothing can follow: the text is complete or the frame was left for good. */
  get exhausted(): boolean {
    return this.items.sets.length === 0;
  }
}

/** Every character of the set leads to the target. */
export interface Freedom {
  readonly set: CharacterSet;
  /** How many of them are ASCII. */
  readonly characters: number;
  readonly target: Configuration;
}
