// Splits a text into tokens, at every place the longest that fits. Not what a tokenizer does, but close, and the same
// for every vocabulary that has all single bytes.

import { tokenBytes } from "../../src/grammar/match/token-trie.ts";
import type { TokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";

/** Splits a text into ids. */
export type Encode = (text: string) => number[];

export function longestMatch(vocabulary: TokenVocabulary): Encode {
  const ids = new Map<string, number>();
  let longest = 0;
  for (let id = 0; id < vocabulary.size; id++) {
    const piece = Buffer.from(tokenBytes(vocabulary, id)).toString("latin1");
    ids.set(piece, id);
    longest = Math.max(longest, piece.length);
  }
  return (text) => {
    const bytes = Buffer.from(text).toString("latin1");
    const tokens: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      let length = Math.min(longest, bytes.length - at);
      while (!ids.has(bytes.slice(at, at + length))) length--;
      tokens.push(ids.get(bytes.slice(at, at + length))!);
      at += length;
    }
    return tokens;
  };
}
