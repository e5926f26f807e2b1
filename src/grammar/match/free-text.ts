// Computes masks of free text without looking at every token. A configuration is free in a set of characters if each of
// them leads to the same next configuration. Inside a string this repeats without end, because the next configuration is
// the same again. Tokens made only of such characters are legal. This gives two shortcuts. A subtree of the trie is legal
// as a whole if it contains no other characters. And a mask can start from a slice: all tokens of the set, and the nodes
// where other tokens branch off. Slices depend only on the vocabulary, so all grammars share them.

import type { Configuration, Freedom, FreeSet, Slice } from "./configuration.ts";
import type { Matcher } from "./matcher.ts";
import type { TokenTrie } from "./token-trie.ts";
import { SET_WORDS, TrieContents } from "./trie-contents.ts";

/** What a mask can start from. */
export interface FreeRun {
  readonly slice: Slice;
  /** The configuration after each number of the set's characters, up to SLICE_LENGTH; null = it depends on which. */
  readonly steps: readonly Configuration[] | null;
  /** Nodes at the root, in trie order, that are in the slice but do not lead to the second step. */
  readonly strangers: readonly number[];
}

/** Tokens with more characters are walked from there on. */
export const SLICE_LENGTH = 16;
/** A slice is good enough if fewer than one node in this many is an exit. */
const FEW_EXITS = 100;
/** Sets remembered per vocabulary: about 50 kB each at 128,000 tokens. */
const MAX_SETS = 256;
/** Configurations with more items than this are not analysed. */
const MAX_ITEMS = 16;

export class FreeText {
  readonly #trie: TokenTrie;
  readonly #contents: TrieContents;
  /** By content, oldest first. */
  readonly #sets = new Map<string, FreeSet>();

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#contents = new TrieContents(trie);
  }

  /** Whether all tokens at and below the node are legal, given that the prefix that ends there led to `at`. */
  subtreeLegal(matcher: Matcher, at: Configuration, node: number): boolean {
    const { setBelow, boundary, height } = this.#contents;
    const below = setBelow[node]!;
    if (below < 0 || boundary[node] === 0) return false;
    const freedom = this.#freedomOf(matcher, at);
    if (freedom !== null && freedom.set.inside[below] === 1) {
      if (this.#steps(matcher, at, freedom.set, height[node]!).length > height[node]!) return true;
    }
    return this.#sustainedBy(matcher, at)?.inside[below] === 1;
  }

  /** null = not free for long enough. */
  run(matcher: Matcher, start: Configuration): FreeRun | null {
    const run = this.#stepsOf(matcher, start);
    if (run !== null && run.slice.exits.length < this.#trie.nodeCount / FEW_EXITS) return run;
    const set = this.#sustainedBy(matcher, start);
    if (set === null) return run;
    set.slice ??= this.#makeSlice(set);
    if (run !== null && run.slice.exits.length <= set.slice.exits.length) return run;
    return { slice: set.slice, steps: null, strangers: [] };
  }

  #stepsOf(matcher: Matcher, start: Configuration): FreeRun | null {
    const freedom = this.#freedomOf(matcher, start);
    if (freedom === null) return null;
    const after = this.#freedomOf(matcher, freedom.target);
    if (after === null) return null;
    const steps = this.#steps(matcher, freedom.target, after.set, SLICE_LENGTH - 1);
    if (steps.length < SLICE_LENGTH) return null;
    after.set.slice ??= this.#makeSlice(after.set);
    return { slice: after.set.slice, steps: [start, ...steps], strangers: this.#firstNodes(after.set, freedom.set) };
  }

  /** Follows characters of the set for up to `longest` characters, while each configuration is free in the set. */
  #steps(matcher: Matcher, start: Configuration, set: FreeSet, longest: number): Configuration[] {
    const steps = [start];
    for (let at = start; steps.length <= longest; steps.push(at)) {
      const freedom = this.#freedomOf(matcher, at);
      if (freedom === null || !includes(freedom.set, set)) break;
      at = freedom.target;
    }
    return steps;
  }

  /** Nodes of first bytes that belong to one set and not to the other. */
  #firstNodes(inside: FreeSet, outside: FreeSet): number[] {
    const nodes: number[] = [];
    if (includes(outside, inside)) return nodes;
    const { entry } = this.#contents;
    for (let node = 1; node < this.#trie.nodeCount; node = this.#trie.skip[node]!) {
      if (holds(inside, entry[node]!) && !holds(outside, entry[node]!)) nodes.push(node);
    }
    return nodes;
  }

  #freedomOf(matcher: Matcher, at: Configuration): Freedom | null {
    if (at.freedom === undefined) at.freedom = this.#findFreedom(matcher, at);
    return at.freedom;
  }

  /** The target that most ASCII characters lead to, and all characters that do. */
  #findFreedom(matcher: Matcher, at: Configuration): Freedom | null {
    if (at.states.length > MAX_ITEMS) return null;
    const groups = matcher.steps.groups(at.states);
    if (groups.length === 0) return null;
    const { words, byteClass } = groups.reduce((a, b) => (b.characters > a.characters ? b : a));
    return { set: this.#intern(words), target: matcher.advance(at, byteClass)! };
  }

  /** Characters that are always legal, because one of the items is there again after each of them. */
  #sustainedBy(matcher: Matcher, at: Configuration): FreeSet | null {
    if (at.sustained === undefined) {
      at.sustained = null;
      let most = 0;
      for (const [index, state] of at.states.entries()) {
        if (!matcher.steps.wide(state)) continue;
        const node = at.nodes[index]!;
        const item = matcher.only(state, node);
        const words = new Int32Array(SET_WORDS);
        let characters = 0;
        for (const group of matcher.steps.groups(item.states)) {
          if (!matcher.advance(item, group.byteClass)!.holds(state, node)) continue;
          for (let i = 0; i < SET_WORDS; i++) words[i]! |= group.words[i]!;
          characters += group.characters;
        }
        if (characters <= most) continue;
        most = characters;
        at.sustained = this.#intern(words);
      }
    }
    return at.sustained;
  }

  #intern(words: Int32Array): FreeSet {
    const key = words.join();
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = { words, inside: this.#setsInside(words), slice: null };
      this.#sets.set(key, set);
      if (this.#sets.size > MAX_SETS) this.#sets.delete(this.#sets.keys().next().value!);
    }
    return set;
  }

  #setsInside(words: Int32Array): Uint8Array {
    const { sets } = this.#contents;
    return Uint8Array.from({ length: sets.length / SET_WORDS }, (_, id) => {
      for (let i = 0; i < SET_WORDS; i++) if ((sets[id * SET_WORDS + i]! & ~words[i]!) !== 0) return 0;
      return 1;
    });
  }

  #makeSlice(set: FreeSet): Slice {
    const { nodeCount, depth, skip } = this.#trie;
    const { entry, boundary, height, setBelow } = this.#contents;
    const mask = new Int32Array((this.#trie.vocabulary.size + 31) >>> 5);
    const exits: number[] = [];
    const exitLengths: number[] = [];
    /** By level: characters begun so far, and whether one has just ended. */
    const lengths: number[] = [0];
    const ended: boolean[] = [true];
    for (let node = 1; node < nodeCount; ) {
      const level = depth[node]!;
      const begins = ended[level - 1]!;
      const before = lengths[level - 1]!;
      if (begins && (!holds(set, entry[node]!) || before === SLICE_LENGTH)) {
        exits.push(node);
        exitLengths.push(before);
        node = skip[node]!;
        continue;
      }
      const length = begins ? before + 1 : before;
      const whole = boundary[node] === 1 && set.inside[setBelow[node]!] === 1 && length + height[node]! <= SLICE_LENGTH;
      const next = whole ? skip[node]! : node + 1;
      this.#trie.addTokens(mask, node, next);
      lengths[level] = length;
      ended[level] = boundary[node] === 1;
      node = next;
    }
    const exitBytes = Uint8Array.from(exits, (node) => this.#trie.byte[node]!);
    return { mask, exits: Int32Array.from(exits), exitBytes, exitLengths: Uint8Array.from(exitLengths) };
  }
}

function holds({ words }: FreeSet, entry: number): boolean {
  return ((words[entry >> 5]! >>> (entry & 31)) & 1) === 1;
}

function includes(outer: FreeSet, inner: FreeSet): boolean {
  return outer === inner || inner.words.every((word, i) => (word & ~outer.words[i]!) === 0);
}
