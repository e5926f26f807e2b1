// Records which characters occur in the subtrees of a token trie, so that a subtree can be judged without walking it. Tokens
// are read as UTF-8. Each ASCII character has an entry. The others share one, except for the two line ends among them,
// which the dot of a regular expression leaves out. Bytes that are not text share one.

import type { TokenTrie } from "./token-trie.ts";

/** Entries of a character set: 128 ASCII characters, then these three. A set that holds LINE_ENDS holds NON_ASCII too. */
export const NON_ASCII = 128;
export const NOT_TEXT = 129;
export const LINE_ENDS = 130;
/** The line ends beyond ASCII. */
export const LINE_END_POINTS = [0x2028, 0x2029] as const;
const LINE_END_BYTES: readonly number[] = LINE_END_POINTS.map((point) => 0xe28080 + (point & 0x3f));
/** 32-bit words of a character set. */
export const SET_WORDS = 5;
/** Subtrees with fewer tokens are walked. */
const MIN_TOKENS = 16;

/** The state of the character being read: nothing is open, or this many bytes in this range must follow. */
interface Expected {
  readonly more: number;
  readonly low: number;
  readonly high: number;
}

const BOUNDARY: Expected = { more: 0, low: 0, high: 0 };

export class TrieContents {
  /**
   * Per node: the entry its byte belongs to. A first byte counts as NOT_TEXT if any byte of its characters does, else as
   * LINE_ENDS if one of them is a line end.
   */
  readonly entry: Uint8Array;
  /** Per node, 1 = a character ends here. */
  readonly boundary: Uint8Array;
  /** Per node: the number of characters in its longest continuation, counting an unfinished one. */
  readonly height: Uint8Array;
  /** Per node: index of the set of entries below it; -1 = too few tokens to matter. */
  readonly setBelow: Int32Array;
  /** The sets, SET_WORDS each. */
  readonly sets: Int32Array;

  constructor(trie: TokenTrie) {
    this.entry = new Uint8Array(trie.nodeCount);
    this.boundary = new Uint8Array(trie.nodeCount);
    this.height = new Uint8Array(trie.nodeCount);
    this.setBelow = new Int32Array(trie.nodeCount).fill(-1);
    this.#readCharacters(trie);
    this.sets = this.#collectSets(trie);
  }

  #readCharacters({ nodeCount, byte, depth }: TokenTrie): void {
    /** By level: what may follow (null: from here on it is not text), and the first byte of the open character. */
    const expected: (Expected | null)[] = [BOUNDARY];
    const firsts: number[] = [0];
    /** By level: the bytes of the open character as a number. */
    const spelled: number[] = [0];
    this.boundary[0] = 1;
    for (let node = 1; node < nodeCount; node++) {
      const level = depth[node]!;
      const before = expected[level - 1]!;
      const after = before && follow(before, byte[node]!);
      const first = before === BOUNDARY ? node : firsts[level - 1]!;
      expected[level] = after;
      firsts[level] = first;
      spelled[level] = (first === node ? 0 : spelled[level - 1]! << 8) | byte[node]!;
      if (after === null) {
        this.entry[node] = NOT_TEXT;
        this.entry[first] = NOT_TEXT;
      } else {
        this.entry[node] = byte[node]! < 0x80 ? byte[node]! : NON_ASCII;
        this.boundary[node] = after === BOUNDARY ? 1 : 0;
        if (LINE_END_BYTES.includes(spelled[level]!) && this.entry[first] === NON_ASCII) this.entry[first] = LINE_ENDS;
      }
    }
  }

  /** From the last node to the first, so that a node comes after everything below it. */
  #collectSets({ nodeCount, byte, depth, skip, tokenOffsets }: TokenTrie): Int32Array {
    const known = new Map<string, number>();
    const sets: number[] = [];
    const deepest = depth.reduce((most, level) => Math.max(most, level), 0);
    /** By level: the characters of the siblings seen so far and of everything below them. */
    const words = new Int32Array((deepest + 2) * SET_WORDS);
    const heights = new Uint8Array(deepest + 2);
    for (let node = nodeCount - 1; node >= 0; node--) {
      const level = depth[node]!;
      const below = (level + 1) * SET_WORDS;
      this.height[node] = heights[level + 1]!;
      if (tokenOffsets[skip[node]!]! - tokenOffsets[node]! >= MIN_TOKENS) {
        const key = words.subarray(below, below + SET_WORDS).join();
        let id = known.get(key);
        if (id === undefined) {
          id = known.size;
          known.set(key, id);
          sets.push(...words.subarray(below, below + SET_WORDS));
        }
        this.setBelow[node] = id;
      }
      for (let i = 0; i < SET_WORDS; i++) words[level * SET_WORDS + i]! |= words[below + i]!;
      words.fill(0, below, below + SET_WORDS);
      words[level * SET_WORDS + (this.entry[node]! >> 5)]! |= 1 << (this.entry[node]! & 31);
      const begins = (byte[node]! & 0xc0) === 0x80 ? 0 : 1;
      heights[level] = Math.max(heights[level]!, heights[level + 1]! + begins);
      heights[level + 1] = 0;
    }
    return Int32Array.from(sets);
  }
}

/** The place after one more byte; null = that byte cannot follow in UTF-8. */
function follow({ more, low, high }: Expected, byte: number): Expected | null {
  if (more > 0) {
    if (byte < low || byte > high) return null;
    return more === 1 ? BOUNDARY : { more: more - 1, low: 0x80, high: 0xbf };
  }
  if (byte < 0x80) return BOUNDARY;
  if (byte < 0xc2 || byte > 0xf4) return null;
  if (byte < 0xe0) return { more: 1, low: 0x80, high: 0xbf };
  // Overlong forms, surrogates and code points above U+10FFFF are not text.
  if (byte < 0xf0) return { more: 2, low: byte === 0xe0 ? 0xa0 : 0x80, high: byte === 0xed ? 0x9f : 0xbf };
  return { more: 3, low: byte === 0xf0 ? 0x90 : 0x80, high: byte === 0xf4 ? 0x8f : 0xbf };
}
