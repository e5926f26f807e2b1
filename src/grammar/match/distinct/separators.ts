// Which subtrees of a token trie hold tokens that can end an item or begin another. Only those need a look while nothing
// can be repeated yet.

import type { TokenTrie } from "../token-trie.ts";

/** A comma. */
export const COMMA = 1;
/** A quote, and later a comma: outside of the string that it ends. */
export const QUOTE_COMMA = 2;
/** An opening bracket or brace, and later a comma. */
export const BRACKET_COMMA = 4;

/** Anything but a few digits. */
export const OTHER_THAN_DIGITS = 8;

/** Digits that a token may add to a number without a look. */
export const FEW_DIGITS = 4;

const TRIES = new WeakMap<TokenTrie, Uint8Array>();

/** Per node: what the bytes from this node on can contain, over all tokens at and below it. */
export function separatorsOf(trie: TokenTrie): Uint8Array {
  let separators = TRIES.get(trie);
  if (separators === undefined) {
    separators = findSeparators(trie);
    TRIES.set(trie, separators);
  }
  return separators;
}

/** From the last node to the first, so that a node comes after everything below it. */
function findSeparators({ nodeCount, byte, depth }: TokenTrie): Uint8Array {
  const out = new Uint8Array(nodeCount);
  /** By level: what the siblings seen so far contain, and the length of their longest token. */
  const found = new Uint8Array(256);
  const digits = new Uint8Array(256);
  for (let node = nodeCount - 1; node > 0; node--) {
    const level = depth[node]!;
    const below = found[level + 1]!;
    found[level + 1] = 0;
    let own = below;
    if (byte[node] === 0x2c) own |= COMMA;
    if (byte[node] === 0x22 && below & COMMA) own |= QUOTE_COMMA;
    if ((byte[node] === 0x5b || byte[node] === 0x7b) && below & COMMA) own |= BRACKET_COMMA;
    const length = digits[level + 1]! + 1;
    digits[level + 1] = 0;
    digits[level] = Math.max(digits[level]!, length);
    if (byte[node]! < 0x30 || byte[node]! > 0x39 || length > FEW_DIGITS) own |= OTHER_THAN_DIGITS;
    out[node] = own;
    found[level]! |= own;
  }
  return out;
}
