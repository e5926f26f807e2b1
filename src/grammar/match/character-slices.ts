// The tokens made only of certain characters. They depend on the vocabulary alone, so all grammars share them. A slice
// has them as a mask, with the places in the trie where other tokens begin to differ.

import type { TokenTrie } from "./token-trie.ts";
import { SET_WORDS, TrieContents } from "./trie-contents.ts";

/** Characters, and which of the trie's sets lie inside. */
export interface CharacterSet {
  readonly words: Int32Array;
  /** Per set of TrieContents, 1 = all of it is in here. */
  readonly inside: Uint8Array;
  /** By the most characters a token may have. */
  readonly slices: Slice[];
}

/** All tokens of one set up to a length in characters. */
export interface Slice {
  readonly mask: Int32Array;
  /**
   * The nodes, in trie order, below which the other tokens lie. Tokens that only exceed the length are among them if it
   * is SLICE_LENGTH, and are left out if it is less.
   */
  readonly exits: Int32Array;
  /** Per exit: its byte, and the characters of the set before it. */
  readonly exitBytes: Uint8Array;
  readonly exitLengths: Uint8Array;
}

/** Longer tokens are walked from there on. */
export const SLICE_LENGTH = 16;
/** Slices remembered per vocabulary: 20 to 50 kB each at 128,000 tokens. */
const MAX_SLICES = 1024;

export class CharacterSlices {
  readonly contents: TrieContents;
  readonly #trie: TokenTrie;
  /** By content, oldest first. */
  readonly #sets = new Map<string, CharacterSet>();
  /** The same, found without comparing contents. */
  readonly #byWords = new WeakMap<Int32Array, CharacterSet>();
  #slices = 0;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.contents = new TrieContents(trie);
  }

  set(words: Int32Array): CharacterSet {
    const known = this.#byWords.get(words);
    if (known !== undefined) return known;
    const key = words.join();
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = { words, inside: this.#setsInside(words), slices: [] };
      this.#sets.set(key, set);
      if (this.#sets.size > MAX_SLICES) this.#forgetOldest();
    }
    this.#byWords.set(words, set);
    return set;
  }

  slice(set: CharacterSet, length: number): Slice {
    let slice = set.slices[length];
    if (slice === undefined) {
      slice = this.#make(set, length);
      set.slices[length] = slice;
      if (++this.#slices > MAX_SLICES) this.#forgetOldest();
    }
    return slice;
  }

  /** Nodes of first bytes that belong to one set and not to the other. */
  firstNodes(inside: CharacterSet, outside: CharacterSet): number[] {
    const nodes: number[] = [];
    if (includes(outside, inside)) return nodes;
    const { entry } = this.contents;
    for (let node = 1; node < this.#trie.nodeCount; node = this.#trie.skip[node]!) {
      if (holds(inside, entry[node]!) && !holds(outside, entry[node]!)) nodes.push(node);
    }
    return nodes;
  }

  #forgetOldest(): void {
    const [key, set] = this.#sets.entries().next().value!;
    this.#sets.delete(key);
    this.#slices -= set.slices.filter(() => true).length;
  }

  #setsInside(words: Int32Array): Uint8Array {
    const { sets } = this.contents;
    return Uint8Array.from({ length: sets.length / SET_WORDS }, (_, id) => {
      for (let i = 0; i < SET_WORDS; i++) if ((sets[id * SET_WORDS + i]! & ~words[i]!) !== 0) return 0;
      return 1;
    });
  }

  #make(set: CharacterSet, longest: number): Slice {
    const { nodeCount, depth, skip } = this.#trie;
    const { entry, boundary, height, setBelow } = this.contents;
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
      const member = holds(set, entry[node]!);
      if (begins && (!member || before === longest)) {
        if (!member || longest === SLICE_LENGTH) {
          exits.push(node);
          exitLengths.push(before);
        }
        node = skip[node]!;
        continue;
      }
      const length = begins ? before + 1 : before;
      const whole = boundary[node] === 1 && set.inside[setBelow[node]!] === 1 && length + height[node]! <= longest;
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

function holds({ words }: CharacterSet, entry: number): boolean {
  return ((words[entry >> 5]! >>> (entry & 31)) & 1) === 1;
}

export function includes(outer: CharacterSet, inner: CharacterSet): boolean {
  return outer === inner || inner.words.every((word, i) => (word & ~outer.words[i]!) === 0);
}
