// Masks of free text without a look at every token. A configuration is free in a set of characters when each of them
// leads to the same next configuration. Inside a string that goes on for ever, since the next one is the same again.
// Tokens made only of such characters are legal. Two shortcuts follow: a subtree of the trie is legal as a whole if it
// holds no other characters; and a mask can start from a slice, which holds all tokens of the set and the nodes where
// the others begin to differ. Slices depend on the vocabulary alone, so all grammars share them.

import type { Configuration, Matcher } from "./matcher.ts";
import { MIXED, NOWHERE } from "./state-steps.ts";
import type { TokenTrie } from "./token-trie.ts";
import { NON_ASCII, SET_WORDS, TrieContents } from "./trie-contents.ts";

/** Characters, and which of the trie's sets lie inside. */
export interface FreeSet {
  readonly words: Int32Array;
  /** Per set of TrieContents, 1 = all of it is in here. */
  readonly inside: Uint8Array;
  /** null = not made yet. */
  slice: Slice | null;
}

/** Every character of the set leads to the target. */
export interface Freedom {
  readonly set: FreeSet;
  readonly target: Configuration;
}

/** All tokens of at most SLICE_LENGTH characters of one set. */
export interface Slice {
  readonly mask: Int32Array;
  /** The nodes, in trie order, below which all other tokens lie. */
  readonly exits: Int32Array;
  /** Per exit: characters of the set before it. */
  readonly exitLengths: Uint8Array;
}

/** What a mask can start from. */
export interface FreeRun {
  readonly slice: Slice;
  /** The configuration after each number of the set's characters, up to SLICE_LENGTH. */
  readonly steps: readonly Configuration[];
  /** Nodes at the root, in trie order, that are in the slice but do not lead to the second step. */
  readonly strangers: readonly number[];
}

/** Longer tokens are walked from there on. */
export const SLICE_LENGTH = 16;
/** Sets remembered per vocabulary: about 50 kB each at 128,000 tokens. */
const MAX_SETS = 256;
/** Configurations with more items than this are not looked at. */
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

  /** All tokens at and below the node are legal after a prefix that ended there in this configuration. */
  subtreeLegal(matcher: Matcher, at: Configuration, node: number): boolean {
    const { setBelow, boundary, height } = this.#contents;
    const below = setBelow[node]!;
    if (below < 0 || boundary[node] === 0) return false;
    const freedom = this.#freedomOf(matcher, at);
    if (freedom === null || freedom.set.inside[below] === 0) return false;
    return this.#steps(matcher, at, freedom.set, height[node]!).length > height[node]!;
  }

  /** null = not free for long enough. */
  run(matcher: Matcher, start: Configuration): FreeRun | null {
    const freedom = this.#freedomOf(matcher, start);
    if (freedom === null) return null;
    const after = this.#freedomOf(matcher, freedom.target);
    if (after === null) return null;
    const steps = this.#steps(matcher, freedom.target, after.set, SLICE_LENGTH - 1);
    if (steps.length < SLICE_LENGTH) return null;
    after.set.slice ??= this.#makeSlice(after.set);
    return { slice: after.set.slice, steps: [start, ...steps], strangers: this.#firstNodes(after.set, freedom.set) };
  }

  /** The configurations along characters of the set, as far as it is free and at most `longest` characters. */
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
    for (let node = 1; node < this.#trie.nodeCount; node = this.#trie.skip[node]!)
      if (holds(inside, entry[node]!) && !holds(outside, entry[node]!)) nodes.push(node);
    return nodes;
  }

  #freedomOf(matcher: Matcher, at: Configuration): Freedom | null {
    if (at.freedom === undefined) at.freedom = this.#findFreedom(matcher, at);
    return at.freedom;
  }

  /** The target that most ASCII characters lead to, and all characters that do. */
  #findFreedom(matcher: Matcher, at: Configuration): Freedom | null {
    if (at.states.length === 0 || at.states.length > MAX_ITEMS) return null;
    const { classes, classCount } = matcher.program;
    const rows = at.states.map((state) => matcher.steps.of(state));
    /** The classes that lead every item to the same place, by that place; how many ASCII characters are in them. */
    const groups = new Map<string, { classes: Uint8Array; characters: number }>();
    const places = (column: number) => rows.map((row) => row[column]!);
    let best: { classes: Uint8Array; characters: number } | null = null;
    for (let byte = 0; byte < NON_ASCII; ) {
      const byteClass = classes[byte]!;
      const first = byte;
      while (byte < NON_ASCII && classes[byte] === byteClass) byte++;
      const targets = places(byteClass);
      if (targets.every((target) => target === NOWHERE)) continue;
      const key = targets.join();
      const group = groups.get(key) ?? { classes: new Uint8Array(classCount), characters: 0 };
      groups.set(key, group);
      group.classes[byteClass] = 1;
      group.characters += byte - first;
      if (best === null || group.characters > best.characters) best = group;
    }
    if (best === null || best.characters < 2) return null;
    const words = new Int32Array(SET_WORDS);
    for (let byte = 0; byte < NON_ASCII; byte++)
      if (best.classes[classes[byte]!]) words[byte >> 5]! |= 1 << (byte & 31);
    const beyond = places(classCount);
    if (!beyond.includes(MIXED) && groups.get(beyond.join()) === best) words[NON_ASCII >> 5]! |= 1 << (NON_ASCII & 31);
    return { set: this.#intern(words), target: matcher.advance(at, best.classes.indexOf(1))! };
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
    return { mask, exits: Int32Array.from(exits), exitLengths: Uint8Array.from(exitLengths) };
  }
}

function holds({ words }: FreeSet, entry: number): boolean {
  return ((words[entry >> 5]! >>> (entry & 31)) & 1) === 1;
}

function includes(outer: FreeSet, inner: FreeSet): boolean {
  return outer === inner || inner.words.every((word, i) => (word & ~outer.words[i]!) === 0);
}
