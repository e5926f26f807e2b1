// Computes masks of free text without looking at every token. A configuration is free in a set of characters if each of
// them leads to the same next configuration. Inside a string this repeats without end, because the next configuration is
// the same again. Tokens made only of such characters are legal. This gives two shortcuts. A subtree of the trie is legal
// as a whole if it contains no other characters. And a mask can start from a slice (see character-slices.ts).

import { type CharacterSet, CharacterSlices, includes, SLICE_LENGTH, type Slice } from "./character-slices.ts";
import type { Configuration, Freedom, Matcher } from "./matcher.ts";
import type { Group, StateSet } from "./state-sets.ts";
import type { TokenTrie } from "./token-trie.ts";
import { LINE_ENDS, NON_ASCII, NOT_TEXT, SET_WORDS } from "./trie-contents.ts";

/** What a mask can start from. */
export interface FreeRun {
  readonly slice: Slice;
  /** The configuration after each number of the set's characters, as far as the slice goes; null = it depends on which. */
  readonly steps: readonly Configuration[] | null;
  /** Nodes at the root, in trie order, that are in the slice but do not lead to the second step. */
  readonly strangers: readonly number[];
}

/** A slice is good enough if fewer than one node in this many is an exit. */
const FEW_EXITS = 100;
/** States that fewer ASCII characters leave are not analysed. */
const MIN_CHARACTERS = 16;
/** Configurations with more items than this are not analysed. */
const MAX_ITEMS = 256;
/** With more items than this, not all groups of characters are compared. */
const MAX_COMPARED = 4;

/** Characters that need no escape in a JSON string. */
const JSON_CHARACTERS = new Int32Array(SET_WORDS);
for (let entry = 0x20; entry <= LINE_ENDS; entry++) {
  if (entry === 0x22 || entry === 0x5c || entry === NOT_TEXT) continue;
  JSON_CHARACTERS[entry >> 5]! |= 1 << (entry & 31);
}

export class FreeText {
  readonly #trie: TokenTrie;
  readonly #slices: CharacterSlices;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#slices = new CharacterSlices(trie);
  }

  /** Makes what strings in JSON need, so that the first of them need not wait for it. */
  prepare(): void {
    const set = this.#slices.set(JSON_CHARACTERS);
    for (let length = 1; length <= SLICE_LENGTH; length++) this.#slices.slice(set, length);
  }

  /** Whether all tokens at and below the node are legal, given that the prefix that ends there led to `at`. */
  subtreeLegal(matcher: Matcher, at: Configuration, node: number): boolean {
    const { setBelow, boundary, height } = this.#slices.contents;
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
    const slice = this.#slices.slice(set, SLICE_LENGTH);
    if (run !== null && run.slice.exits.length <= slice.exits.length) return run;
    return { slice, steps: null, strangers: [] };
  }

  #stepsOf(matcher: Matcher, start: Configuration): FreeRun | null {
    const freedom = this.#freedomOf(matcher, start);
    if (freedom === null || freedom.characters < MIN_CHARACTERS) return null;
    const after = this.#freedomOf(matcher, freedom.target);
    // The first character often has fewer choices than the others. Their set is shared by more states.
    const set = after !== null && includes(after.set, freedom.set) ? after.set : freedom.set;
    const steps = [start, ...this.#steps(matcher, freedom.target, set, SLICE_LENGTH - 1)];
    const length = steps.length - 1;
    if (length < SLICE_LENGTH && !this.#stops(matcher, steps, set)) return null;
    return { slice: this.#slices.slice(set, length), steps, strangers: this.#slices.firstNodes(set, freedom.set) };
  }

  /** Follows characters of the set for up to `longest` characters, while each configuration is free in the set. */
  #steps(matcher: Matcher, start: Configuration, set: CharacterSet, longest: number): Configuration[] {
    const steps = [start];
    for (let at = start; steps.length <= longest; steps.push(at)) {
      const freedom = this.#freedomOf(matcher, at);
      if (freedom === null || !includes(freedom.set, set)) break;
      at = freedom.target;
    }
    return steps;
  }

  /** After the last step, no character of the set is legal, whoever the caller is. */
  #stops(matcher: Matcher, steps: readonly Configuration[], { words }: CharacterSet): boolean {
    if (steps.some((at) => at.escaped)) return false;
    return steps.at(-1)!.items.sets.every((set) => {
      const illegal = matcher.sets.groups(set).get(null);
      return illegal !== undefined && words.every((word, i) => (word & ~illegal.words[i]!) === 0);
    });
  }

  #freedomOf(matcher: Matcher, at: Configuration): Freedom | null {
    if (at.freedom === undefined) at.freedom = this.#findFreedom(matcher, at);
    return at.freedom;
  }

  /** The largest group of characters that lead every item to the same place. */
  #findFreedom(matcher: Matcher, at: Configuration): Freedom | null {
    const { sets } = at.items;
    if (sets.length > MAX_ITEMS || !sets.some(({ breadth }) => breadth >= MIN_CHARACTERS)) return null;
    const words = sets.length > MAX_COMPARED ? usualGroup(matcher, sets) : commonGroup(matcher, sets);
    if (words === null) return null;
    const first = words.findIndex((word) => word !== 0);
    const byteClass = matcher.program.classes[32 * first + 31 - Math.clz32(words[first]! & -words[first]!)]!;
    return { set: this.#slices.set(words), characters: ascii(words), target: matcher.advance(at, byteClass)! };
  }

  /** Characters that are always legal, because one of the items is there again after each of them. */
  #sustainedBy(matcher: Matcher, at: Configuration): CharacterSet | null {
    if (at.sustained === undefined) at.sustained = this.#findSustained(matcher, at);
    return at.sustained;
  }

  #findSustained(matcher: Matcher, at: Configuration): CharacterSet | null {
    let sustained: CharacterSet | null = null;
    let most = 0;
    for (const [index, set] of at.items.sets.entries()) {
      const node = at.items.nodes[index]!;
      for (const alone of matcher.sets.wide(set)) {
        const words = new Int32Array(SET_WORDS);
        let characters = 0;
        for (const group of matcher.sets.groups(alone).values()) {
          if (group.target === null || !matcher.only(group.target, node).holds(alone.kernel[0]!, node)) continue;
          for (let i = 0; i < SET_WORDS; i++) words[i]! |= group.words[i]!;
          characters += group.characters;
        }
        if (characters <= most) continue;
        most = characters;
        sustained = this.#slices.set(words);
      }
    }
    return sustained;
  }
}

/** The largest group of characters that lead each set to one place; null = none of them is legal. */
function commonGroup(matcher: Matcher, sets: readonly StateSet[]): Int32Array | null {
  if (sets.length === 1) {
    let most: Group | null = null;
    for (const group of matcher.sets.groups(sets[0]!).values()) {
      if (group.target !== null && group.characters > (most?.characters ?? 0)) most = group;
    }
    return most?.words ?? null;
  }
  let parts: { words: Int32Array; legal: boolean }[] = [{ words: new Int32Array(SET_WORDS).fill(-1), legal: false }];
  for (const set of sets) {
    const groups = [...matcher.sets.groups(set)];
    parts = parts.flatMap(({ words, legal }) =>
      groups.map(([target, group]) => ({ words: both(words, group.words), legal: legal || target !== null })),
    );
    parts = parts.filter(({ words }) => ascii(words) > 0);
  }
  return parts.filter(({ legal }) => legal).sort((a, b) => ascii(b.words) - ascii(a.words))[0]?.words ?? null;
}

/** Such a group without comparing all: the characters that are in the largest group of every set. Often the same. */
function usualGroup(matcher: Matcher, sets: readonly StateSet[]): Int32Array | null {
  const words = new Int32Array(SET_WORDS).fill(-1);
  let legal = false;
  for (const set of sets) {
    let most: Group | null = null;
    for (const group of matcher.sets.groups(set).values()) {
      if (group.characters > (most?.characters ?? 0)) most = group;
    }
    for (let i = 0; i < SET_WORDS; i++) words[i]! &= most!.words[i]!;
    legal ||= most!.target !== null;
  }
  return legal && ascii(words) > 0 ? words : null;
}

function both(a: Int32Array, b: Int32Array): Int32Array {
  return a.map((word, i) => word & b[i]!);
}

/** How many ASCII characters a set holds. */
function ascii(words: Int32Array): number {
  let count = 0;
  for (let word = 0; word < NON_ASCII >> 5; word++) for (let bits = words[word]!; bits !== 0; bits &= bits - 1) count++;
  return count;
}
