// A configuration is a set of (state, stack) items: all that the grammar considers possible after some text, closed under
// links, calls and returns. It caches what is known about it: its successors, its token mask, and the characters in which
// it is free (see free-text.ts).

import type { StackNode } from "./stack-graph.ts";

export class Configuration {
  /** The items that can consume a byte, as two lists of the same length. */
  readonly states: readonly number[];
  readonly nodes: readonly StackNode[];
  /** The items before closing: they determine everything else. */
  readonly kernelStates: readonly number[];
  readonly kernelNodes: readonly StackNode[];
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
  sustained: FreeSet | null | undefined;

  constructor(
    kernel: Kernel,
    closed: { states: number[]; nodes: StackNode[]; accepting: boolean; escaped: boolean },
    epoch: number,
  ) {
    this.kernelStates = kernel.states;
    this.kernelNodes = kernel.nodes;
    this.states = closed.states;
    this.nodes = closed.nodes;
    this.accepting = closed.accepting;
    this.escaped = closed.escaped;
    this.epoch = epoch;
  }

  holds(state: number, node: StackNode): boolean {
    return this.states.some((each, index) => each === state && this.nodes[index] === node);
  }

  /** Nothing can follow: the text is complete or the frame was left for good. */
  get exhausted(): boolean {
    return this.states.length === 0;
  }
}

interface Kernel {
  readonly states: readonly number[];
  readonly nodes: readonly StackNode[];
}

/** A set of characters, and which of the trie's sets it contains. */
export interface FreeSet {
  readonly words: Int32Array;
  /** Per set of TrieContents, 1 = this set contains all of it. */
  readonly inside: Uint8Array;
  /** null = not made yet. */
  slice: Slice | null;
}

/** Every character of the set leads to the target. */
export interface Freedom {
  readonly set: FreeSet;
  readonly target: Configuration;
}

/** All tokens made of at most SLICE_LENGTH characters of one set. */
export interface Slice {
  readonly mask: Int32Array;
  /** The nodes, in trie order, whose subtrees hold all other tokens. */
  readonly exits: Int32Array;
  /** Per exit: its byte, and the characters of the set before it. */
  readonly exitBytes: Uint8Array;
  readonly exitLengths: Uint8Array;
}
