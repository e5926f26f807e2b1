// All tokens of a vocabulary as a tree of bytes, in preorder arrays. A linear scan that skips dead subtrees visits
// exactly the prefixes that a grammar can follow.

import { LONGEST_TOKEN } from "../automaton/expression-compiler.ts";
import type { TokenVocabulary } from "./token-vocabulary.ts";

export class TokenTrie {
  readonly vocabulary: TokenVocabulary;
  /** Node 0 is the empty prefix. */
  readonly nodeCount: number;
  readonly byte: Uint8Array;
  readonly depth: Uint8Array;
  /** First node after the subtree. */
  readonly skip: Int32Array;
  /** Tokens ending at node i: tokens[tokenOffsets[i] .. tokenOffsets[i + 1]]; a subtree's tokens are contiguous. */
  readonly tokenOffsets: Int32Array;
  readonly tokens: Int32Array;
  /** Per byte: the node of tokens that begin with it, 0 = there are none. */
  readonly firstNodes: Int32Array;

  constructor(vocabulary: TokenVocabulary) {
    this.vocabulary = vocabulary;
    const sorted = sortedTokens(vocabulary);
    const byte = [0];
    const depth = [0];
    const skip = [0];
    const offsets = [0];
    const open = [0];
    let previous: Uint8Array = new Uint8Array(0);
    const close = (level: number, end: number): void => {
      while (open.length > level) skip[open.pop()!] = end;
    };
    for (const [index, id] of sorted.entries()) {
      const bytes = tokenBytes(vocabulary, id);
      const shared = commonPrefix(previous, bytes);
      close(shared + 1, byte.length);
      for (let i = shared; i < bytes.length; i++) {
        open.push(byte.length);
        byte.push(bytes[i]!);
        depth.push(i + 1);
        skip.push(0);
        offsets.push(index);
      }
      previous = bytes;
    }
    close(0, byte.length);
    offsets.push(sorted.length);
    this.nodeCount = byte.length;
    this.byte = Uint8Array.from(byte);
    this.depth = Uint8Array.from(depth);
    this.skip = Int32Array.from(skip);
    this.tokenOffsets = Int32Array.from(offsets);
    this.tokens = Int32Array.from(sorted);
    this.firstNodes = new Int32Array(256);
    for (let node = 1; node < this.nodeCount; node = skip[node]!) this.firstNodes[byte[node]!] = node;
  }

  /** Sets the bits of the tokens that end at the nodes first..end. */
  addTokens(mask: Int32Array, first: number, end: number): void {
    const { tokenOffsets, tokens } = this;
    const last = tokenOffsets[end]!;
    for (let i = tokenOffsets[first]!; i < last; i++) mask[tokens[i]! >>> 5]! |= 1 << (tokens[i]! & 31);
  }

  removeTokens(mask: Int32Array, first: number, end: number): void {
    const { tokenOffsets, tokens } = this;
    const last = tokenOffsets[end]!;
    for (let i = tokenOffsets[first]!; i < last; i++) mask[tokens[i]! >>> 5]! &= ~(1 << (tokens[i]! & 31));
  }

  /** The token with exactly these bytes, -1 = none (or no bytes). */
  tokenSpelled(bytes: ArrayLike<number>): number {
    const node = bytes.length === 0 ? -1 : findPath(this, bytes);
    return node >= 0 && this.tokenOffsets[node]! < this.tokenOffsets[node + 1]!
      ? this.tokens[this.tokenOffsets[node]!]!
      : -1;
  }
}

function findPath(trie: TokenTrie, bytes: ArrayLike<number>): number {
  let node = 0;
  for (let i = 0; i < bytes.length; i++) {
    const end = trie.skip[node]!;
    let child = node + 1;
    while (child < end && trie.byte[child] !== bytes[i]) child = trie.skip[child]!;
    if (child >= end) return -1;
    node = child;
  }
  return node;
}

export function tokenBytes(vocabulary: TokenVocabulary, id: number): Uint8Array {
  return vocabulary.bytes.subarray(vocabulary.offsets[id]!, vocabulary.offsets[id + 1]!);
}

function sortedTokens(vocabulary: TokenVocabulary): number[] {
  const ids: number[] = [];
  for (let id = 0; id < vocabulary.size; id++) {
    const length = vocabulary.offsets[id + 1]! - vocabulary.offsets[id]!;
    if (length > 0 && length <= LONGEST_TOKEN) ids.push(id);
  }
  const bytes = Buffer.from(vocabulary.bytes.buffer, vocabulary.bytes.byteOffset, vocabulary.bytes.length);
  const { offsets } = vocabulary;
  return ids.sort((a, b) => bytes.compare(bytes, offsets[b]!, offsets[b + 1]!, offsets[a]!, offsets[a + 1]!) || a - b);
}

function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
